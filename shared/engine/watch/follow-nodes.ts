import type { Change, LiveNode, Resource, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { isNewer, listPages, versionOf } from './list-pages.ts';
import { NodeList, NodeRoom } from './memory-limits.ts';
import { isExpired, retryMs, WatchTimeoutError, watchWithTimeout } from './watch-with-timeout.ts';

/**
 * Page size without streamed lists. 5,000 nodes in pages of 50 take no more memory than streamed; of 500, three times.
 */
export const PAGE_SIZE = 50;
/** After this many streamed lists that ended early, the list is requested in pages. */
const BROKEN_STREAMS = 2;

/** Evictions wait for the first answer, and one request without an answer is no load for the server. */
export const UNANSWERED: Backoff = { firstMs: 250, longestMs: 3_000 };

export type Request = 'list' | 'watch';

/** Handler of a cluster's nodes. Called in order, one call at a time. */
export interface NodeSink {
  replace(nodes: readonly LiveNode[]): void;
  change(change: Change<LiveNode>): void;
  /** The server answered or sent an event. */
  contact(): void;
  /** A request failed and is retried. A version that is too old is no failure, unless the next one is too, again. */
  failed(error: unknown, request: Request): void;
  /** A list is complete, or a watch is established. */
  answered(request: Request): void;
  /** The server's history was replaced (its etcd was restored): earlier versions no longer count. */
  rewound(): void;
}

export interface FollowDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each list and watch, because another server may answer now. If it rejects, that counts as failed. */
  readonly claim: () => Promise<void>;
}

/**
 * Follows the nodes until `signal` aborts: a streamed list, or pages where the server has none, then a watch that is
 * resumed until its version is too old (410). Never rejects.
 */
export const followNodes = (nodes: Resource<LiveNode>, sink: NodeSink, deps: FollowDeps): Promise<void> =>
  new NodeFollower(nodes, sink, deps).run();

class NodeFollower {
  readonly #nodes: Resource<LiveNode>;
  readonly #sink: NodeSink;
  readonly #deps: FollowDeps;
  readonly #room = new NodeRoom();
  #version: string | undefined;
  #initial: NodeList | undefined;
  #failures = 0;
  #brokenStreams = 0;
  /** The last watch ended because its version was too old, and the next watch has not delivered an event yet. */
  #expired = false;

  constructor(nodes: Resource<LiveNode>, sink: NodeSink, deps: FollowDeps) {
    this.#nodes = nodes;
    this.#sink = sink;
    this.#deps = deps;
  }

  async run(): Promise<void> {
    const { signal, claim } = this.#deps;
    while (!signal.aborted) {
      this.#initial = undefined;
      try {
        await claim();
        if (this.#brokenStreams >= BROKEN_STREAMS) await this.#listByPages();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        await this.#failed(error);
      }
    }
  }

  async #listByPages(): Promise<void> {
    const { signal } = this.#deps;
    const listed = new NodeList();
    let version: string | undefined;
    const failed = (error: unknown) => this.#sink.failed(error, 'list');
    for await (const page of listPages(this.#nodes, { limit: PAGE_SIZE, signal, failed })) {
      this.#sink.contact();
      for (const node of page.items) listed.push(node);
      version = page.resourceVersion;
    }
    this.#room.replace(listed.nodes);
    this.#sink.replace(listed.nodes);
    this.#version = version;
    this.#sink.answered('list');
    // Another server may answer next time.
    this.#brokenStreams = 0;
    this.#failures = 0;
  }

  async #watch(): Promise<void> {
    const { clock, signal } = this.#deps;
    this.#initial = this.#version === undefined ? new NodeList() : undefined;
    const from = this.#version === undefined ? { initial: true } : { resourceVersion: this.#version };
    const stands = () => {
      this.#sink.contact();
      if (!this.#initial) this.#sink.answered('watch');
    };
    for await (const event of watchWithTimeout(this.#nodes, { ...from, signal }, { clock, stands })) {
      this.#sink.contact();
      if (!this.#take(event)) continue;
      // Update the version only now: an event that the sink rejected must be delivered again.
      if (this.#version !== undefined) {
        this.#expired = false;
        this.#sink.answered('watch');
      }
      this.#version = versionOf(event);
      this.#failures = 0;
    }
    if (this.#initial && !signal.aborted) throw new ApiError('the streamed list of nodes ended early', 0);
  }

  /** Returns false while the streamed list is incomplete. */
  #take(event: WatchEvent<LiveNode>): boolean {
    if (this.#initial) {
      if (event.kind === 'upsert') this.#initial.push(event.object);
      if (event.kind !== 'bookmark' || !event.initialEnd) return false;
      this.#room.replace(this.#initial.nodes);
      this.#sink.replace(this.#initial.nodes);
      this.#initial = undefined;
      this.#brokenStreams = 0;
      this.#sink.answered(this.#expired ? 'list' : 'watch');
    } else if (this.#version !== undefined && isNewer(this.#version, versionOf(event))) {
      throw new RewoundError();
    } else if ('object' in event) {
      if (event.kind === 'upsert') this.#room.keep(event.object);
      else this.#room.forget(event.object.name);
      this.#sink.change(event);
    }
    return true;
  }

  async #failed(error: unknown): Promise<void> {
    const { signal } = this.#deps;
    if (this.#initial && refusesStreams(error)) {
      this.#brokenStreams = BROKEN_STREAMS;
      return;
    }
    if (this.#initial && !(error instanceof ApiError && error.status !== 0)) this.#brokenStreams += 1;
    this.#failures += 1;
    if (!isExpired(error) || this.#expired)
      this.#sink.failed(error, this.#version === undefined ? 'list' : 'watch');
    this.#expired = isExpired(error);
    if (this.#expired) this.#version = undefined;
    if (error instanceof RewoundError || (error instanceof WatchTimeoutError && (await this.#wasRewound()))) {
      this.#version = undefined;
      this.#sink.rewound();
    }
    const backoff = error instanceof ApiError && error.status === 0 ? UNANSWERED : undefined;
    await pause(retryMs(error, this.#failures, backoff), signal);
  }

  /** The server answers a watch from a version that it has lost with silence, not with 410. */
  async #wasRewound(): Promise<boolean> {
    const version = this.#version;
    if (version === undefined) return false;
    // Without an answer, the next watch shows whether the server was restored.
    const page = await this.#nodes.list({ limit: 1, signal: this.#deps.signal }).catch(() => undefined);
    return page !== undefined && isNewer(version, page.resourceVersion);
  }
}

class RewoundError extends ApiError {
  constructor() {
    super('the server went back to an older version: its etcd was restored', 0);
  }
}

/** Reports whether the server rejects streamed lists: servers before 1.32 don't have them, or not for every user. */
const refusesStreams = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 400 || error.status === 422);
