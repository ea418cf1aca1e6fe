import PQueue from 'p-queue';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { Change, LivePod, Page, Resource } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { Age } from '#shared/time/age.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { Request } from './follow-nodes.ts';
import { isNewer, listPages, newest, versionOf } from './list-pages.ts';
import { ListSlots } from './list-slots.ts';
import { PassingPods, tooManyPassing } from './memory-limits.ts';
import { PodMerge } from './pod-merge.ts';
import { isExpired, isLost, retryMs, watchWithTimeout } from './watch-with-timeout.ts';

/** Maximum for one cluster. An API server takes the resources for a fifth list from the other four. */
const MAX_CONCURRENT_LISTS = 4;
/** Maximum for the whole process. It bounds the answers that are in memory at a time. */
const MAX_CONCURRENT_LISTS_IN_ALL = 8;
/**
 * Maximum nodes of a cluster, and of the process, with watches of their own. Further nodes share one watch of all pods.
 */
export const OWN_WATCHES = 100;
const OWN_WATCHES_IN_ALL = 1_000;
/** The shared watch ends when fewer nodes than this have been followed for this long. */
const FEW_NODES = 70;
const FEW_FOR_MS = 5 * 60_000;
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
const CACHED = '0';

/** Limits that the clusters of a process share. */
export class PodFollowLimits {
  readonly lists = new ListSlots(MAX_CONCURRENT_LISTS_IN_ALL);
  #watches = 0;

  takeWatch(): boolean {
    if (this.#watches >= OWN_WATCHES_IN_ALL) return false;
    this.#watches += 1;
    return true;
  }

  giveWatch(): void {
    this.#watches -= 1;
  }
}

/** A request to the server: for one node, or for `all` nodes that share a watch. */
export interface Attempt {
  readonly request: Request;
  readonly of: NodeName | 'all';
}

export interface PodSink {
  replace(node: NodeName, pods: readonly LivePod[]): void;
  /** Takes a change of a pod whose node is followed and listed. */
  change(change: Change<LivePod>): void;
  /**
   * A request failed and is retried; `attempt` absent: it was to save others. A version that is too old is no failure,
   * unless the next one is too, again.
   */
  failed(error: unknown, attempt?: Attempt): void;
  /** A list is complete, or a watch is established. */
  answered(attempt: Attempt): void;
  /** There are no further attempts for this node, or for `all`. */
  ended(of: Attempt['of']): void;
}

export interface PodFollowerDeps {
  readonly limits: PodFollowLimits;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface FollowedNode {
  readonly node: NodeName;
  readonly merge: PodMerge;
  readonly stopping: AbortController;
  /** Nodes that are tainted later are listed earlier: the others have already waited for seconds. */
  readonly priority: number;
  own: boolean;
  /** When its last list was complete, by the stopwatch. */
  listedAtMs: number;
  /** The newest version that was listed or received. */
  position: string | undefined;
  listing?: Promise<string> | undefined;
}

interface SharedWatch {
  readonly stopping: AbortController;
  readonly begun: PromiseWithResolvers<void>;
  /** Version of the last pod event that was read or skipped. Lists must not be older. */
  position: string;
}

/**
 * Follows the pods of chosen nodes: a list each, and a watch from its version, as a kubelet has. One watch of all pods
 * serves nodes without their own. Never rejects: requests are retried until the node is removed or `signal` aborts.
 */
export class PodFollower {
  readonly #pods: Resource<LivePod>;
  readonly #sink: PodSink;
  readonly #deps: PodFollowerDeps;
  readonly #lists = new PQueue({ concurrency: MAX_CONCURRENT_LISTS });
  readonly #followed = new Map<NodeName, FollowedNode>();
  readonly #passing = new PassingPods();
  #added = 0;
  #own = 0;
  #shared: SharedWatch | undefined;
  #few: NodeJS.Timeout | undefined;
  #listingAll: Promise<void> | undefined;
  #notAll: Age | undefined;

  constructor(pods: Resource<LivePod>, sink: PodSink, deps: PodFollowerDeps) {
    this.#pods = pods;
    this.#sink = sink;
    this.#deps = deps;
    deps.signal.addEventListener('abort', () => this.#removeAll(), { once: true });
  }

  add(node: NodeName): void {
    if (this.#deps.signal.aborted || this.#followed.has(node)) return;
    this.#added += 1;
    const followed: FollowedNode = {
      node,
      merge: new PodMerge(this.#passing),
      stopping: new AbortController(),
      priority: this.#added,
      own: this.#takeWatch(),
      listedAtMs: 0,
      position: undefined,
    };
    this.#followed.set(node, followed);
    void (followed.own ? this.#followOwn(followed) : this.#followShared(followed));
    this.#minWatches();
  }

  remove(node: NodeName): void {
    const followed = this.#followed.get(node);
    if (!followed) return;
    this.#followed.delete(node);
    followed.stopping.abort();
    this.#sink.ended(node);
    followed.merge.drop();
    if (followed.own) this.#giveWatch();
    this.#minWatches();
  }

  relist(): void {
    const listed = [...this.#followed.values()].filter(({ merge }) => merge.listed);
    const oldest = listed.sort((a, b) => a.listedAtMs - b.listedAtMs).slice(0, RELISTED);
    for (const each of oldest) {
      this.#list(each, AFTER_ALL_OTHERS).catch((error: unknown) => {
        if (!each.stopping.signal.aborted) this.#sink.failed(error, { request: 'list', of: each.node });
      });
    }
  }

  /** Lists everything again after the server's history was replaced: earlier versions no longer count. */
  rewind(): void {
    const nodes = [...this.#followed.keys()];
    this.#removeAll();
    for (const node of nodes) this.add(node);
  }

  #removeAll(): void {
    for (const node of [...this.#followed.keys()]) this.remove(node);
  }

  #takeWatch(): boolean {
    const may = !this.#shared && this.#own < OWN_WATCHES && this.#deps.limits.takeWatch();
    if (may) this.#own += 1;
    return may;
  }

  #giveWatch(): void {
    this.#own -= 1;
    this.#deps.limits.giveWatch();
  }

  async #followOwn(followed: FollowedNode): Promise<void> {
    const { node, stopping } = followed;
    const { signal } = stopping;
    let failures = 0;
    let expired = false;
    let from: string | undefined;
    const { clock } = this.#deps;
    const stands = () => this.#sink.answered({ request: 'watch', of: node });
    while (!signal.aborted) {
      try {
        from ??= await this.#list(followed);
        const options = { onNode: node, resourceVersion: from, signal };
        for await (const event of watchWithTimeout(this.#pods, options, { clock, stands })) {
          // The event may have been in transit when the node was removed.
          if (signal.aborted) return;
          if (isNewer(from, versionOf(event))) return this.rewind();
          if ('object' in event) this.#receive(followed, event);
          from = versionOf(event);
          failures = 0;
          expired = false;
          stands();
        }
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (!isExpired(error) || expired)
          this.#sink.failed(error, { request: from === undefined ? 'list' : 'watch', of: node });
        expired = isExpired(error);
        // A silent watch may wait for a version that the server has lost: a new list shows the current one.
        if (isLost(error)) from = undefined;
        await pause(retryMs(error, failures), signal);
      }
    }
  }

  async #followShared(followed: FollowedNode): Promise<void> {
    const { signal } = followed.stopping;
    this.#shared ??= this.#openShared();
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.#shared?.begun.promise;
        // A list that was requested earlier may be older than the watch.
        await followed.listing?.catch(() => undefined);
        if (!followed.own) await this.#list(followed);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#sink.failed(error, { request: 'list', of: followed.node });
        await pause(retryMs(error, failures), signal);
      }
    }
  }

  #openShared(): SharedWatch {
    const shared = {
      stopping: new AbortController(),
      begun: Promise.withResolvers<void>(),
      position: CACHED,
    };
    void this.#watchAll(shared);
    return shared;
  }

  async #watchAll(shared: SharedWatch): Promise<void> {
    const { signal } = shared.stopping;
    const follows = (node: NodeName) => this.#followed.get(node)?.own === false;
    let failures = 0;
    let from: string | undefined;
    let lost = false;
    let expired = false;
    const { clock } = this.#deps;
    const stands = () => this.#sink.answered({ request: 'watch', of: 'all' });
    while (!signal.aborted) {
      try {
        if (from === undefined) {
          from = await this.#anyVersion(lost, signal);
          this.#sink.answered({ request: 'list', of: 'all' });
          shared.position = from;
          shared.begun.resolve();
          if (lost) this.#relistShared();
          lost = false;
        }
        const options = { resourceVersion: from, follows, signal };
        for await (const event of watchWithTimeout(this.#pods, options, { clock, stands })) {
          if (signal.aborted) return;
          if (isNewer(from, versionOf(event))) return this.rewind();
          if ('object' in event) this.#receiveShared(event);
          from = versionOf(event);
          if (event.kind !== 'bookmark') shared.position = from;
          failures = 0;
          expired = false;
          stands();
        }
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (!isExpired(error) || expired)
          this.#sink.failed(error, { request: from === undefined ? 'list' : 'watch', of: 'all' });
        expired = isExpired(error);
        if (isLost(error)) {
          // Stays set until there is a version to continue from: the request for one may fail, too.
          lost = true;
          from = undefined;
        }
        await pause(retryMs(error, failures), signal);
      }
    }
  }

  /** Resolves with a version to start the watch from: after one that was too old, the newest. */
  async #anyVersion(newestOnly: boolean, signal: AbortSignal): Promise<string> {
    const [node] = this.#followed.keys();
    const page = await this.#pods.list({
      ...(node === undefined ? { limit: 1 } : { onNode: node }),
      ...(newestOnly ? {} : { notOlderThan: CACHED }),
      signal,
    });
    return page.resourceVersion;
  }

  #relistShared(): void {
    for (const each of this.#followed.values()) if (!each.own) void this.#followShared(each);
  }

  #receiveShared(change: Change<LivePod>): void {
    const { node } = change.object;
    const followed = node && this.#followed.get(node);
    if (followed && !followed.own) this.#receive(followed, change);
  }

  #receive(followed: FollowedNode, change: Change<LivePod>): void {
    const { resourceVersion } = change.object;
    followed.position = newest(followed.position ?? CACHED, resourceVersion);
    if (followed.merge.receive(change)) this.#sink.change(change);
  }

  #list(followed: FollowedNode, priority = followed.priority): Promise<string> {
    followed.listing ??= this.#listInTurn(followed, priority).finally(() => {
      followed.listing = undefined;
    });
    return followed.listing;
  }

  async #listInTurn(followed: FollowedNode, priority: number): Promise<string> {
    const { signal } = followed.stopping;
    const { limits } = this.#deps;
    const isFirst = !followed.merge.listed;
    for (let behind = 0; ; ) {
      try {
        const ask = () => this.#ask(followed, behind < TRIES_BEHIND, isFirst);
        const inTurn = () => limits.lists.run(this, ask);
        const version = await this.#lists.add(inTurn, { priority });
        if (version !== undefined) return version;
        signal.throwIfAborted();
      } catch (error) {
        if (!isBehind(error) || behind >= TRIES_BEHIND || signal.aborted) throw error;
        behind += 1;
        await pause(retryMs(error, behind), signal);
      }
    }
  }

  get #waiting(): readonly FollowedNode[] {
    return [...this.#followed.values()].filter(({ merge }) => !merge.listed);
  }

  #listAllOnce(): void {
    const { clock } = this.#deps;
    if (this.#notAll && this.#notAll.atLeastMs < NOT_ALL_FOR_MS) return;
    this.#listingAll ??= this.#listAll()
      .catch((error: unknown) => {
        this.#notAll = new Age(clock);
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
      this.#waiting.map((each) => [each.node, { each, list: each.merge.ask(), pods: [] as LivePod[] }]),
    );
    let version = '';
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
    for (const { each, list: ask, pods } of requests.values()) {
      const known = each.stopping.signal.aborted ? undefined : each.merge.answer(ask, pods, version);
      if (known) this.#replace(each, known, version);
    }
  }

  #replace(followed: FollowedNode, pods: readonly LivePod[], version: string): void {
    this.#sink.replace(followed.node, pods);
    this.#sink.answered({ request: 'list', of: followed.node });
    // Update the position only now: pods that the sink rejected must be listed again.
    followed.listedAtMs = stopwatchMs(this.#deps.clock);
    followed.position = newest(followed.position ?? CACHED, version);
  }

  /**
   * `undefined`: the answer doesn't count: more events arrived than could be kept, or the server's history was
   * replaced.
   */
  async #ask(followed: FollowedNode, fromCache: boolean, isFirst: boolean): Promise<string | undefined> {
    const { node, merge, stopping } = followed;
    const { signal } = stopping;
    signal.throwIfAborted();
    // All pods were listed while this list waited.
    if (isFirst && merge.listed && followed.position !== undefined) return followed.position;
    const list = merge.ask();
    const floor = newest(
      followed.position ?? CACHED,
      followed.own ? CACHED : (this.#shared?.position ?? CACHED),
    );
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
      this.rewind();
      return undefined;
    }
    const pods = merge.answer(list, page.items, page.resourceVersion);
    if (!pods) return undefined;
    this.#replace(followed, pods, page.resourceVersion);
    return page.resourceVersion;
  }

  /** Gives all nodes watches of their own again after few nodes were followed for long. */
  #minWatches(): void {
    const few = this.#shared !== undefined && this.#followed.size < FEW_NODES;
    if (!few) {
      clearTimeout(this.#few);
      this.#few = undefined;
      if (this.#followed.size > 0) return;
    }
    if (this.#followed.size === 0) this.#closeShared();
    else this.#few ??= setTimeout(() => this.#unshare(), FEW_FOR_MS).unref();
  }

  #unshare(): void {
    this.#few = undefined;
    const position = this.#shared?.position ?? CACHED;
    this.#closeShared();
    for (const each of this.#followed.values()) {
      if (each.own) continue;
      each.own = this.#takeWatch();
      each.position = newest(each.position ?? CACHED, position);
      void (each.own ? this.#followOwn(each) : this.#followShared(each));
    }
  }

  #closeShared(): void {
    clearTimeout(this.#few);
    this.#few = undefined;
    this.#shared?.stopping.abort();
    // Nodes that wait for the shared watch check their own signal.
    this.#shared?.begun.resolve();
    if (this.#shared) this.#sink.ended('all');
    this.#shared = undefined;
  }
}

/** Reports whether the server has not seen the requested version yet (`ResourceVersionTooLarge`). */
const isBehind = (error: unknown): boolean => error instanceof ApiError && error.status === 504;
