import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { WorkQueue } from './work-queue.ts';

export interface WorkersOptions<Key extends string> {
  readonly queue: WorkQueue<Key>;
  readonly atOnce: number;
  /** Works for a key after so many consecutive failures; resolves with the time to return to the key, if any. */
  readonly work: (key: Key, failures: number) => Promise<EpochMs | undefined>;
  /** Called when the work for a key failed, with its consecutive failures; the key returns by itself. */
  readonly failed: (key: Key, reason: unknown, failures: number) => void;
  /** Checked immediately before each piece of work: keys of other clusters wait. Absent: all keys may be worked on. */
  readonly mayWork?: (cluster: ClusterName) => boolean;
}

/** Works on the keys of a queue as they become ready. */
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

  /** Begins the work that may begin. To be called when a cluster may be worked on again. */
  offer(): void {
    if (this.#offered || this.#stopped) return;
    this.#offered = true;
    // Take one key per turn of the event loop: otherwise, a burst of work that never waits would block the process.
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
