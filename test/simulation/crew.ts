import { Worker } from 'node:worker_threads';
import type { Asked, Common } from './worker.ts';

/** Short-lived objects are most of what a history makes; the more of them are swept at once, the fewer are in use then. */
const YOUNG_MB = 192;

/** Asks a worker for something. */
export type Ask = <Answer>(asked: Asked) => Promise<Answer>;

/** Threads that play histories: each has time and chance to itself. */
export class Crew {
  readonly #workers: readonly Worker[];
  #stopped = false;

  constructor(workers: number, common: Common) {
    this.#workers = Array.from(
      { length: workers },
      () =>
        new Worker(new URL('worker.ts', import.meta.url), {
          workerData: common,
          resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
        }),
    );
  }

  /** Has all of it done, by whoever is free, or all up to the moment at which it is stopped. */
  async share<Item>(items: Iterable<Item>, work: (item: Item, ask: Ask) => Promise<void>): Promise<void> {
    const left = Iterator.from(items);
    this.#stopped = false;
    await Promise.all(
      this.#workers.map(async (worker) => {
        const ask: Ask = (asked) => answerOf(worker, asked);
        for (let next = left.next(); !next.done && !this.#stopped; next = left.next()) {
          await work(next.value, ask);
        }
      }),
    );
  }

  /** What is begun is ended, and nothing more begun. */
  stop(): void {
    this.#stopped = true;
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

function answerOf<Answer>(worker: Worker, asked: Asked): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const fail = (error: Error) => reject(error);
  worker.once('error', fail);
  worker.once('message', (answer: Answer) => {
    worker.off('error', fail);
    resolve(answer);
  });
  worker.postMessage(asked);
  return promise;
}
