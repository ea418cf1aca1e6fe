import { Worker } from 'node:worker_threads';
import type { Common, Question } from './worker.ts';

/**
 * The heap's young generation. Most objects of a history are short-lived, and a larger young generation leaves fewer of them in
 * use at each collection.
 */
const YOUNG_MB = 192;

/** Sends a request to a worker. */
export type Request = <Answer>(question: Question) => Promise<Answer>;

/** Threads that play histories: each has simulated time and random numbers of its own. */
export class WorkerPool {
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

  /** Distributes all items to the free workers, or the items up to the time at which the pool is stopped. */
  async share<Item>(
    items: Iterable<Item>,
    work: (item: Item, query: Request) => Promise<void>,
  ): Promise<void> {
    const left = Iterator.from(items);
    this.#stopped = false;
    await Promise.all(
      this.#workers.map(async (worker) => {
        const query: Request = (question) => answerOf(worker, question);
        for (let next = left.next(); !next.done && !this.#stopped; next = left.next()) {
          await work(next.value, query);
        }
      }),
    );
  }

  /** Lets started items finish, and starts no more. */
  stop(): void {
    this.#stopped = true;
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

function answerOf<Answer>(worker: Worker, question: Question): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const fail = (error: Error) => reject(error);
  worker.once('error', fail);
  worker.once('message', (answer: Answer) => {
    worker.off('error', fail);
    resolve(answer);
  });
  worker.postMessage(question);
  return promise;
}
