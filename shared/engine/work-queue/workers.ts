import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { WorkQueue } from './work-queue.ts';

export interface WorkersOptions<Key extends string> {
  readonly queue: WorkQueue<Key>;
  /** Keys that are worked on at a time. */
  readonly atOnce: number;
  /** Does what there is to do for a key, after so many failures in a row; resolves with when to come back to it by itself, if so. */
  readonly work: (key: Key, failures: number) => Promise<EpochMs | undefined>;
  /** A key could not be worked on, for so many times in a row, and comes back. */
  readonly failed: (key: Key, reason: unknown, failures: number) => void;
  /** Asked right before each piece of work: keys of other clusters wait. Absent: all may be worked on. */
  readonly mayWork?: (cluster: ClusterName) => boolean;
}

/** Works on the keys of a queue as they get ready. */
export class Workers<Key extends string> {
  readonly #options: WorkersOptions<Key>;
  readonly #underWay = new Set<Promise<void>>();
  #offered = false;
  #stopped = false;
  #next = Promise.withResolvers<void>();

  constructor(options: WorkersOptions<Key>) {
    this.#options = options;
    options.queue.onReady(() => this.offer());
  }

  /** Begins what may be begun. To be called when a cluster may be worked on that might not before. */
  offer(): void {
    if (this.#offered || this.#stopped) return;
    this.#offered = true;
    // One key a turn: a burst of work that waits for nothing would else keep the process from all else.
    void nextTurn().then(() => {
      this.#offered = false;
      const { queue, atOnce, mayWork } = this.#options;
      if (this.#stopped || this.#underWay.size >= atOnce) return;
      const key = queue.take(mayWork);
      if (key === undefined) return;
      const working = this.#perform(key).finally(() => {
        this.#underWay.delete(working);
        this.#next.resolve();
        this.#next = Promise.withResolvers();
        this.offer();
      });
      this.#underWay.add(working);
      this.offer();
    });
  }

  /** Resolves when the next piece of work has ended. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#underWay);
  }

  async #perform(key: Key): Promise<void> {
    const { queue, work, failed } = this.#options;
    try {
      const again = await work(key, queue.failuresOf(key));
      queue.done(key);
      if (again !== undefined) queue.addAt(key, again);
    } catch (error) {
      queue.failed(key);
      failed(key, error, queue.failuresOf(key));
    }
  }
}
