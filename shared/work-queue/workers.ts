import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { WorkQueue } from './work-queue.ts';

export interface WorkersOptions<Key extends string> {
  readonly queue: WorkQueue<Key>;
  /** Keys that are worked on at a time. */
  readonly atOnce: number;
  /** Does what there is to do for a key; resolves with when to come back to it by itself, if so. */
  readonly work: (key: Key) => Promise<EpochMs | undefined>;
  /** A key could not be worked on, and comes back. */
  readonly failed: (key: Key, reason: unknown) => void;
  /** Asked right before each piece of work: keys of other clusters wait. Absent: all may be worked on. */
  readonly mayWork?: (cluster: ClusterName) => boolean;
}

/** Works on the keys of a queue as they get ready. */
export class Workers<Key extends string> {
  readonly #options: WorkersOptions<Key>;
  readonly #underWay = new Set<Promise<void>>();
  #offered = false;
  #stopped = false;

  constructor(options: WorkersOptions<Key>) {
    this.#options = options;
    options.queue.onReady(() => this.offer());
  }

  /** Begins what may be begun. To be called when a cluster may be worked on that might not before. */
  offer(): void {
    if (this.#offered || this.#stopped) return;
    this.#offered = true;
    // One key a turn: a burst of work that waits for nothing would else keep the process from all else.
    setImmediate(() => {
      this.#offered = false;
      const { queue, atOnce, mayWork } = this.#options;
      if (this.#stopped || this.#underWay.size >= atOnce) return;
      const key = queue.take(mayWork);
      if (key === undefined) return;
      const working = this.#perform(key).finally(() => {
        this.#underWay.delete(working);
        this.offer();
      });
      this.#underWay.add(working);
      this.offer();
    });
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#underWay);
  }

  async #perform(key: Key): Promise<void> {
    const { queue, work, failed } = this.#options;
    try {
      const again = await work(key);
      queue.done(key);
      if (again !== undefined) queue.addAt(key, again);
    } catch (error) {
      queue.failed(key);
      failed(key, error);
    }
  }
}
