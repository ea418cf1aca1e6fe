import PQueue from 'p-queue';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { pause } from '#shared/time/pause.ts';

/** Events that may wait: 500 bytes each. */
const MAX_WAITING = 20_000;
/** Passes of a cluster whose Events are posted at a time: few, beside the evictions that go on. */
const MAX_CONCURRENT_PASSES = 8;
/** For how long they are held back at the most while evictions are under way: those of 40 pods that fall due together take less. */
const MAX_AHEAD_MS = 1_000;
/** How long a service that stops waits for Events. */
const DRAIN_MS = 5_000;

/**
 * Has the Events of evictions posted behind the evictions: whoever has recorded what it did on a node goes on to the next one, and few
 * passes of a cluster at a time have theirs posted, as soon as no eviction is under way. Where many wait already, they are waited for.
 */
export class LaterEvents {
  readonly #queues = new Map<ClusterName, PQueue>();
  #waiting = 0;
  #underWay = 0;
  /** While Events are held back: what ends that. */
  #patience: NodeJS.Timeout | undefined;

  /** `work` evicts: until it is done, Events are held back, unless some waited before or it takes long. Ends as `work` does. */
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

  /** Has `post` post so many Events; resolves when somebody else may go on. `post` must not reject. */
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

  /** Resolves when all are posted, or after so long: what is not posted then is lost with the connections, and told so. */
  async stop(withinMs = DRAIN_MS): Promise<void> {
    this.#release();
    const posted = new AbortController();
    const posting = Promise.all([...this.#queues.values()].map((queue) => queue.onIdle()));
    await Promise.race([posting.then(() => posted.abort()), pause(withinMs, posted.signal)]);
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
