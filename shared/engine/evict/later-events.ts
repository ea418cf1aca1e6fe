import PQueue from 'p-queue';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { endsWithin } from '#shared/time/stopping.ts';

/** Maximum waiting Events: 500 bytes each. */
const MAX_WAITING = 20_000;
/** Passes of a cluster whose Events are posted at a time: few, because evictions continue meanwhile. */
const MAX_CONCURRENT_PASSES = 8;
/** Maximum delay of Events while evictions are in progress: evicting 40 pods that fall due together takes less. */
export const MAX_AHEAD_MS = 1_000;
/** Maximum time that a stopping service waits for Events. */
const DRAIN_MS = 5_000;

/**
 * Posts the Events of evictions after the evictions: few passes of a cluster at a time, when no eviction is in
 * progress. A worker whose results are recorded continues with its next node, unless too many Events wait.
 */
export class LaterEvents {
  readonly #queues = new Map<ClusterName, PQueue>();
  #waiting = 0;
  #underWay = 0;
  /** Ends the delay of Events; absent: Events aren't delayed. */
  #patience: NodeJS.Timeout | undefined;

  /** Runs `work`, which evicts. Events wait until it is done, unless they waited before or it takes long. */
  async ahead<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#underWay += 1;
    if (this.#underWay === 1 && this.#waiting === 0) this.#holdBack();
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#release();
    }
  }

  /** Posts this many Events by `post`; resolves when the caller may continue. `post` must not reject. */
  async post(cluster: ClusterName, events: number, post: () => Promise<void>): Promise<void> {
    if (events === 0) return;
    if (this.#waiting + events > MAX_WAITING) return post();
    const autoStart = this.#patience === undefined;
    const queue = this.#queues.get(cluster) ?? new PQueue({ concurrency: MAX_CONCURRENT_PASSES, autoStart });
    this.#queues.set(cluster, queue);
    this.#waiting += events;
    void queue.add(async () => {
      await post();
      this.#waiting -= events;
    });
  }

  /** Resolves when all Events are posted, or after `withinMs`; the rest are logged as dropped. */
  async stop(withinMs = DRAIN_MS): Promise<void> {
    this.#release();
    await endsWithin(withinMs, Promise.all([...this.#queues.values()].map((queue) => queue.onIdle())));
  }

  #holdBack(): void {
    this.#patience = setTimeout(() => this.#release(), MAX_AHEAD_MS).unref();
    for (const queue of this.#queues.values()) queue.pause();
  }

  #release(): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    for (const queue of this.#queues.values()) queue.start();
  }
}
