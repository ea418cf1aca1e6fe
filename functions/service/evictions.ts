import { parseDueMessage } from '#shared/aws/due-message.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import { type Timers, WORK_BACKOFF } from '#shared/engine/timers.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import { type NodeRef, nodeKey, type PodUid, parseNodeKey } from '#shared/eviction/identity.ts';
import type { ServiceState, ServiceStore } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface EvictionsDeps {
  /** Resolves with the time of the next look. `failedBefore`: the previous look failed. */
  readonly process: (ref: NodeRef, failedBefore: boolean) => Promise<EpochMs | undefined>;
  /** Resets failed pods of a node, so that they are tried again. */
  readonly tryAgain: (ref: NodeRef, pods: readonly PodUid[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Nodes that are handled at a time. Each look mostly waits for API servers. */
const AT_ONCE = 64;

/**
 * Handles nodes in this process when their evictions are due. Its timers are exact to the millisecond and end
 * with the process. The caller must call `rearm` at startup.
 */
export class Evictions implements Timers {
  readonly #deps: EvictionsDeps;
  readonly #queue: WorkQueue<string>;
  readonly #workers: Workers<string>;
  /** Pods that operators want to retry, by node. */
  readonly #requested = new Map<string, Set<PodUid>>();

  constructor(deps: EvictionsDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    const clusterOf = (key: string) => parseNodeKey(key).cluster;
    this.#queue = new WorkQueue({ clock, backoff: WORK_BACKOFF, clusterOf });
    this.#workers = new Workers({
      queue: this.#queue,
      atOnce: AT_ONCE,
      work: (key, failures) => this.#process(key, failures > 0),
      failed: (key, reason, failures) =>
        log.warn('message.retrying', { ...parseNodeKey(key), receiveCount: failures, error: reason }),
    });
  }

  /** Number of nodes that are queued or being handled. */
  get size(): number {
    return this.#queue.size;
  }

  async arm(ref: NodeRef, times: readonly EpochMs[]): Promise<void> {
    for (const at of times) this.#queue.addAt(nodeKey(ref), at);
  }

  /** Arms a timer for every pending eviction in the store. Rejects with `StoreError`. */
  async rearm(store: Pick<ServiceStore, 'upcoming'>): Promise<void> {
    for await (const { ref, dueAt } of store.upcoming()) this.#queue.addAt(nodeKey(ref), dueAt);
  }

  retry({ cluster, node }: NodeRef, pods: readonly PodUid[]): void {
    const key = nodeKey({ cluster, node });
    this.#requested.set(key, new Set([...(this.#requested.get(key) ?? []), ...pods]));
    this.#queue.addAt(key, this.#deps.clock.now());
  }

  /** Resolves when the current looks end. The next start arms the timers again from the store. */
  stop(): Promise<void> {
    return this.#workers.stop();
  }

  async #process(key: string, failedBefore: boolean): Promise<EpochMs | undefined> {
    const ref = parseNodeKey(key);
    const requested = this.#requested.get(key);
    if (requested) {
      await this.#deps.tryAgain(ref, [...requested]);
      if (this.#requested.get(key) === requested) this.#requested.delete(key);
    }
    return this.#deps.process(ref, failedBefore);
  }
}

/** Handles a node, and resolves with the time of the next look. */
export async function handleNode(
  ref: NodeRef,
  deps: EvictDeps,
  failedBefore: boolean,
): Promise<EpochMs | undefined> {
  const again = await evictNode(ref, deps, failedBefore);
  return again && deps.clock.now() + again.againInSeconds * 1000;
}

/**
 * Starts the requests that operators made from other processes. If a request is unreadable, starts the others
 * first and then rejects.
 */
export async function beginRequested({ requests }: ServiceState, evictions: Evictions): Promise<void> {
  const failures: unknown[] = [];
  for (const { body } of await requests()) {
    try {
      const message = parseDueMessage(body);
      evictions.retry(message, message.kind === 'retry' ? message.pods : []);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
