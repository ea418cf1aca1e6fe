import type { Timers } from '#shared/engine/timers.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import { type NodeRef, nodeKey, type PodUid, parseNodeKey } from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface EvictionsDeps {
  /** Looks at a node; resolves with when to look again. `failedBefore`: the look before could not be finished. */
  readonly look: (ref: NodeRef, failedBefore: boolean) => Promise<EpochMs | undefined>;
  /** Has pods of a node count as never tried that were given up. */
  readonly tryAgain: (ref: NodeRef, pods: readonly PodUid[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Looks wait for API servers: many at a time. */
const AT_ONCE = 64;
/** What could not be read or recorded: the store is away for a moment, or for longer. */
const BACKOFF: Backoff = { firstMs: 1_000, longestMs: 300_000 };

/**
 * Has nodes looked at, in this process, when evictions fall due there. Its moments are exact to the millisecond and end with the
 * process: call `rearm` when it starts.
 */
export class Evictions implements Timers {
  readonly #deps: EvictionsDeps;
  readonly #queue: WorkQueue<string>;
  readonly #workers: Workers<string>;
  /** What operators want tried again, by node. */
  readonly #asked = new Map<string, Set<PodUid>>();

  constructor(deps: EvictionsDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    const clusterOf = (key: string) => parseNodeKey(key).cluster;
    this.#queue = new WorkQueue({ clock, backoff: BACKOFF, clusterOf });
    this.#workers = new Workers({
      queue: this.#queue,
      atOnce: AT_ONCE,
      work: (key, failures) => this.#look(key, failures > 0),
      failed: (key, reason, failures) =>
        log.warn('message.retrying', { ...parseNodeKey(key), receiveCount: failures, error: reason }),
    });
  }

  /** How many nodes wait to be looked at, or are. */
  get size(): number {
    return this.#queue.size;
  }

  async arm(ref: NodeRef, fireAts: readonly EpochMs[]): Promise<void> {
    for (const fireAt of fireAts) this.#queue.addAt(nodeKey(ref), fireAt);
  }

  /** Arms a timer for everything the store knows to come. Rejects with `StoreError`. */
  async rearm(store: {
    upcoming(): AsyncIterable<{ readonly ref: NodeRef; readonly fireAt: EpochMs }>;
  }): Promise<void> {
    for await (const { ref, fireAt } of store.upcoming()) this.#queue.addAt(nodeKey(ref), fireAt);
  }

  /** Tries pods again that were given up, and looks at their node. */
  retry({ cluster, node }: NodeRef, pods: readonly PodUid[]): void {
    const key = nodeKey({ cluster, node });
    this.#asked.set(key, new Set([...(this.#asked.get(key) ?? []), ...pods]));
    this.#queue.addAt(key, this.#deps.clock.now());
  }

  /** Forgets what is armed: the next start does it anew, from the store. Resolves when the looks under way have ended. */
  async stop(): Promise<void> {
    this.#queue.stop();
    await this.#workers.stop();
  }

  async #look(key: string, failedBefore: boolean): Promise<EpochMs | undefined> {
    const ref = parseNodeKey(key);
    const asked = this.#asked.get(key);
    if (asked) {
      await this.#deps.tryAgain(ref, [...asked]);
      if (this.#asked.get(key) === asked) this.#asked.delete(key);
    }
    return this.#deps.look(ref, failedBefore);
  }
}
