import type { NodeName } from '#shared/eviction/identity.ts';
import type { Change, LivePod, Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { isNewer, newest, versionOf } from './list-pages.ts';
import { ListSlots } from './list-slots.ts';
import { type Attempt, CACHED, type ListedNode, type ListSink, PodLists } from './pod-lists.ts';
import { isExpired, isLost, retryMs, watchWithTimeout } from './watch-with-timeout.ts';

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

export interface PodSink extends ListSink {
  /** Takes a change of a pod whose node is followed and listed. */
  change(change: Change<LivePod>): void;
  /** There are no further attempts for this node, or for `all`. */
  ended(of: Attempt['of']): void;
}

export interface PodFollowerDeps {
  readonly limits: PodFollowLimits;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface SharedWatch {
  readonly stopping: AbortController;
  readonly begun: PromiseWithResolvers<void>;
  /** Version of the last pod event that was read or skipped. Lists must not be older. */
  position: string;
}

interface Watch extends Pick<WatchOptions, 'onNode' | 'follows' | 'signal'> {
  readonly of: Attempt['of'];
  /** Resolves with the version to watch from; `lost`: the earlier one was lost. */
  start(lost: boolean): Promise<string>;
  receive(event: WatchEvent<LivePod>): void;
}

/**
 * Follows the pods of chosen nodes: a list each, and a watch from its version, as a kubelet has. One watch of all pods
 * serves nodes without their own. Never rejects: requests are retried until the node is removed or `signal` aborts.
 */
export class PodFollower {
  readonly #pods: Resource<LivePod>;
  readonly #sink: PodSink;
  readonly #deps: PodFollowerDeps;
  readonly #lists: PodLists;
  readonly #followed = new Map<NodeName, ListedNode>();
  readonly #own = new Set<ListedNode>();
  #shared: SharedWatch | undefined;
  #few: NodeJS.Timeout | undefined;

  constructor(pods: Resource<LivePod>, sink: PodSink, deps: PodFollowerDeps) {
    this.#pods = pods;
    this.#sink = sink;
    this.#deps = deps;
    this.#lists = new PodLists(pods, sink, {
      ...deps,
      slots: deps.limits.lists,
      floorOf: (listed) => (this.#own.has(listed) ? CACHED : (this.#shared?.position ?? CACHED)),
      rewound: () => this.rewind(),
    });
    deps.signal.addEventListener('abort', () => this.#removeAll());
  }

  add(node: NodeName): void {
    if (this.#deps.signal.aborted || this.#followed.has(node)) return;
    const listed = this.#lists.add(node);
    this.#followed.set(node, listed);
    this.#follow(listed);
    this.#minWatches();
  }

  remove(node: NodeName): void {
    const listed = this.#followed.get(node);
    if (!listed) return;
    this.#followed.delete(node);
    this.#lists.remove(listed);
    this.#sink.ended(node);
    if (this.#own.delete(listed)) this.#deps.limits.giveWatch();
    this.#minWatches();
  }

  relist(): void {
    this.#lists.relist();
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

  #follow(listed: ListedNode): void {
    const own = !this.#shared && this.#own.size < OWN_WATCHES && this.#deps.limits.takeWatch();
    if (own) this.#own.add(listed);
    void (own ? this.#followOwn(listed) : this.#followShared(listed));
  }

  #sharing(node: NodeName | undefined): ListedNode | undefined {
    const listed = node && this.#followed.get(node);
    return listed && !this.#own.has(listed) ? listed : undefined;
  }

  #followOwn(listed: ListedNode): Promise<void> {
    const { node, signal } = listed;
    return this.#watch({
      of: node,
      onNode: node,
      signal,
      start: () => this.#lists.list(listed),
      receive: (event) => this.#receive(listed, event),
    });
  }

  async #followShared(listed: ListedNode): Promise<void> {
    const { node, signal } = listed;
    this.#shared ??= this.#openShared(node);
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.#shared?.begun.promise;
        // A list that was requested earlier may be older than the watch.
        await listed.listing?.catch(() => undefined);
        if (!this.#own.has(listed)) await this.#lists.list(listed);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#sink.failed(error, { request: 'list', of: node });
        await pause(retryMs(error, failures), signal);
      }
    }
  }

  #openShared(node: NodeName): SharedWatch {
    const stopping = new AbortController();
    const shared = { stopping, begun: Promise.withResolvers<void>(), position: CACHED };
    void this.#watch({
      of: 'all',
      follows: (each) => this.#sharing(each) !== undefined,
      signal: stopping.signal,
      start: async (lost) => {
        const { resourceVersion } = await this.#pods.list({
          onNode: node,
          // After a version that was too old, only the newest counts.
          ...(lost ? {} : { notOlderThan: CACHED }),
          signal: stopping.signal,
        });
        shared.position = resourceVersion;
        this.#sink.answered({ request: 'list', of: 'all' });
        shared.begun.resolve();
        const relisted = lost ? [...this.#followed.values()] : [];
        for (const each of relisted) if (!this.#own.has(each)) void this.#followShared(each);
        return resourceVersion;
      },
      receive: (event) => {
        if ('object' in event) this.#receive(this.#sharing(event.object.node), event);
        if (event.kind !== 'bookmark') shared.position = versionOf(event);
      },
    });
    return shared;
  }

  /** Watches from the version of `start`, and starts again when that version is lost. Never rejects. */
  async #watch({ of: place, start, receive, ...options }: Watch): Promise<void> {
    const { signal } = options;
    const { clock } = this.#deps;
    const stands = () => this.#sink.answered({ request: 'watch', of: place });
    let failures = 0;
    let expired = false;
    let lost = false;
    let from: string | undefined;
    while (!signal.aborted) {
      try {
        from ??= await start(lost);
        const resumed = { ...options, resourceVersion: from };
        for await (const event of watchWithTimeout(this.#pods, resumed, { clock, stands })) {
          // The event may have been in transit when the node was removed.
          if (signal.aborted) return;
          if (isNewer(from, versionOf(event))) return this.rewind();
          receive(event);
          from = versionOf(event);
          failures = 0;
          expired = false;
          stands();
        }
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (!isExpired(error) || expired)
          this.#sink.failed(error, { request: from === undefined ? 'list' : 'watch', of: place });
        expired = isExpired(error);
        if (isLost(error)) {
          // A silent watch may wait for a version that the server has lost: a new list shows the current one.
          from = undefined;
          // Each start after a complete one follows a loss. It may fail, too.
          lost = true;
        }
        await pause(retryMs(error, failures), signal);
      }
    }
  }

  #receive(listed: ListedNode | undefined, event: WatchEvent<LivePod>): void {
    if (!listed || !('object' in event)) return;
    listed.position = newest(listed.position, event.object.resourceVersion);
    if (listed.merge.receive(event)) this.#sink.change(event);
  }

  /** Gives all nodes watches of their own again after few nodes were followed for long. */
  #minWatches(): void {
    const { size } = this.#followed;
    if (this.#shared && size > 0 && size < FEW_NODES) {
      this.#few ??= setTimeout(() => this.#unshare(), FEW_FOR_MS).unref();
      return;
    }
    clearTimeout(this.#few);
    this.#few = undefined;
    if (size === 0) this.#closeShared();
  }

  #unshare(): void {
    this.#few = undefined;
    const position = this.#shared?.position ?? CACHED;
    this.#closeShared();
    for (const followed of this.#followed.values()) {
      if (this.#own.has(followed)) continue;
      followed.position = newest(followed.position, position);
      this.#follow(followed);
    }
  }

  #closeShared(): void {
    this.#shared?.stopping.abort();
    // Nodes that wait for the shared watch check their own signal.
    this.#shared?.begun.resolve();
    if (this.#shared) this.#sink.ended('all');
    this.#shared = undefined;
  }
}
