import PQueue from 'p-queue';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { LivePod, Page, Resource } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { Age } from '#shared/time/age.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { Request } from './follow-nodes.ts';
import { isNewer, listPages, newest } from './list-pages.ts';
import type { ListSlots } from './list-slots.ts';
import { PassingPods, tooManyPassing } from './memory-limits.ts';
import { PodMerge } from './pod-merge.ts';
import { retryMs } from './watch-with-timeout.ts';

/** Maximum for one cluster. An API server takes the resources for a fifth list from the other four. */
const MAX_CONCURRENT_LISTS = 4;
/** Nodes that are listed again at each resync, to repair events that a watch lost in breach of its contract. */
const RELISTED = 100;
/** Attempts with a version that the server has not seen yet (504), before the newest version is requested. */
const TRIES_BEHIND = 3;
/** If a node's list takes this long while this many nodes wait for theirs, all pods are listed once. */
const SLOW_LIST_MS = 500;
const MANY_WAIT = 50;
/** After such a list fails, all pods are not listed again for this long. */
const NOT_ALL_FOR_MS = 60_000;
const PAGE_SIZE = 500;
const AFTER_ALL_OTHERS = 0;
/** Any version that the server has in its cache. */
export const CACHED = '0';

/** A request to the server: for one node, or for `all` nodes that share a watch. */
export interface Attempt {
  readonly request: Request;
  readonly of: NodeName | 'all';
}

export interface ListSink {
  replace(node: NodeName, pods: readonly LivePod[]): void;
  /**
   * A request failed and is retried; `attempt` absent: it was to save others. A version that is too old is no failure,
   * unless the next one is too, again.
   */
  failed(error: unknown, attempt?: Attempt): void;
  /** A list is complete, or a watch is established. */
  answered(attempt: Attempt): void;
}

export interface PodListsDeps {
  readonly slots: ListSlots;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Returns the version of a watch that the node shares with others: its lists must not be older. */
  readonly floorOf: (listed: ListedNode) => string;
  /** Called when the server's history was replaced: earlier versions no longer count. */
  readonly rewound: () => void;
}

/** A node whose pods are listed until it is removed; then, `signal` aborts. */
export interface ListedNode {
  readonly node: NodeName;
  readonly signal: AbortSignal;
  readonly merge: PodMerge;
  /** Nodes that are tainted later are listed earlier: the others have already waited for seconds. */
  readonly priority: number;
  /** When its last list was complete, by the stopwatch. */
  listedAtMs: number;
  /** The newest version that was listed or received. */
  position: string;
  listing?: Promise<string> | undefined;
}

/**
 * Lists the pods of nodes, a few nodes at a time, and first those that were added last. A list that the server can't
 * answer yet is retried. If lists are slow and many nodes wait, one list of all pods serves all of them.
 */
export class PodLists {
  readonly #pods: Resource<LivePod>;
  readonly #sink: ListSink;
  readonly #deps: PodListsDeps;
  readonly #turns = new PQueue({ concurrency: MAX_CONCURRENT_LISTS });
  readonly #nodes = new Map<ListedNode, AbortController>();
  readonly #passing = new PassingPods();
  #added = 0;
  #listingAll: Promise<void> | undefined;
  #notAll: Age | undefined;

  constructor(pods: Resource<LivePod>, sink: ListSink, deps: PodListsDeps) {
    this.#pods = pods;
    this.#sink = sink;
    this.#deps = deps;
  }

  add(node: NodeName): ListedNode {
    this.#added += 1;
    const stopping = new AbortController();
    const { signal } = stopping;
    const merge = new PodMerge(this.#passing);
    const listed = { node, signal, merge, priority: this.#added, listedAtMs: 0, position: CACHED };
    this.#nodes.set(listed, stopping);
    return listed;
  }

  remove(listed: ListedNode): void {
    this.#nodes.get(listed)?.abort();
    this.#nodes.delete(listed);
    listed.merge.drop();
  }

  /** Lists the nodes again whose lists are oldest. */
  relist(): void {
    const listed = [...this.#nodes.keys()].filter(({ merge }) => merge.listed);
    const oldest = listed.sort((a, b) => a.listedAtMs - b.listedAtMs).slice(0, RELISTED);
    for (const node of oldest) {
      void this.list(node, AFTER_ALL_OTHERS).catch((error: unknown) => {
        if (!node.signal.aborted) this.#sink.failed(error, { request: 'list', of: node.node });
      });
    }
  }

  /** Resolves with the list's version. While a list is in progress, further calls share it. */
  list(listed: ListedNode, priority = listed.priority): Promise<string> {
    listed.listing ??= this.#listInTurn(listed, priority).finally(() => {
      listed.listing = undefined;
    });
    return listed.listing;
  }

  async #listInTurn(listed: ListedNode, priority: number): Promise<string> {
    const { signal } = listed;
    const isFirst = !listed.merge.listed;
    for (let behind = 0; ; ) {
      try {
        const ask = () => this.#ask(listed, behind < TRIES_BEHIND, isFirst);
        const version = await this.#turns.add(() => this.#deps.slots.run(this, ask), { priority });
        if (version !== undefined) return version;
      } catch (error) {
        if (!isBehind(error) || behind >= TRIES_BEHIND || signal.aborted) throw error;
        behind += 1;
        await pause(retryMs(error, behind), signal);
      }
    }
  }

  get #waiting(): readonly ListedNode[] {
    return [...this.#nodes.keys()].filter(({ merge }) => !merge.listed);
  }

  #listAllOnce(): void {
    if (this.#notAll && this.#notAll.atLeastMs < NOT_ALL_FOR_MS) return;
    this.#listingAll ??= this.#listAll()
      .catch((error: unknown) => {
        this.#notAll = new Age(this.#deps.clock);
        this.#sink.failed(error);
      })
      .finally(() => {
        this.#listingAll = undefined;
      });
  }

  /** Nodes whose own list is faster don't wait for this one. */
  async #listAll(): Promise<void> {
    const { signal } = this.#deps;
    const requests = new Map(
      this.#waiting.map((each) => [each.node, { node: each, list: each.merge.ask(), pods: [] as LivePod[] }]),
    );
    let version = CACHED;
    let bytes = 0;
    const failed = (error: unknown) => this.#sink.failed(error);
    try {
      for await (const page of listPages(this.#pods, { limit: PAGE_SIZE, signal, failed })) {
        for (const pod of page.items) {
          const waiting = pod.node && requests.get(pod.node);
          if (!waiting) continue;
          const taken = this.#passing.take(pod);
          if (taken === undefined) throw tooManyPassing();
          bytes += taken;
          waiting.pods.push(pod);
        }
        version = page.resourceVersion;
      }
    } finally {
      this.#passing.give(bytes);
    }
    for (const { node, list: ask, pods } of requests.values()) {
      const known = node.signal.aborted ? undefined : node.merge.answer(ask, pods, version);
      if (known) this.#replace(node, known, version);
    }
  }

  #replace(listed: ListedNode, pods: readonly LivePod[], version: string): void {
    this.#sink.replace(listed.node, pods);
    this.#sink.answered({ request: 'list', of: listed.node });
    // Update the position only now: pods that the sink rejected must be listed again.
    listed.listedAtMs = stopwatchMs(this.#deps.clock);
    listed.position = newest(listed.position, version);
  }

  /** `undefined`: the answer doesn't count. Too many events arrived, or the server's history was replaced. */
  async #ask(listed: ListedNode, fromCache: boolean, isFirst: boolean): Promise<string | undefined> {
    const { node, signal, merge } = listed;
    signal.throwIfAborted();
    // All pods were listed while this list waited.
    if (isFirst && merge.listed && listed.position !== CACHED) return listed.position;
    const list = merge.ask();
    const floor = newest(listed.position, this.#deps.floorOf(listed));
    let page: Page<LivePod>;
    const asking = new Age(this.#deps.clock);
    try {
      page = await this.#pods.list({ onNode: node, ...(fromCache ? { notOlderThan: floor } : {}), signal });
    } catch (error) {
      merge.giveUp(list);
      throw error;
    }
    signal.throwIfAborted();
    if (asking.atLeastMs > SLOW_LIST_MS && this.#waiting.length > MANY_WAIT) this.#listAllOnce();
    if (isNewer(floor, page.resourceVersion)) {
      this.#deps.rewound();
      return undefined;
    }
    const pods = merge.answer(list, page.items, page.resourceVersion);
    if (!pods) return undefined;
    this.#replace(listed, pods, page.resourceVersion);
    return page.resourceVersion;
  }
}

/** Reports whether the server has not seen the requested version yet (`ResourceVersionTooLarge`). */
const isBehind = (error: unknown): boolean => error instanceof ApiError && error.status === 504;
