/** One unit of work. Call `free` to let the next unit start early; otherwise it starts when this one settles. */
export type Work<Result> = (free: () => void) => Promise<Result>;

/**
 * Runs one unit of work per key at a time. Callers that ask meanwhile share the next one, which sees everything that
 * they saw. So one pass covers pods that fall due in quick succession, and no two passes delete the same pod.
 */
export class SingleFlight<Result> {
  /** Promises that resolve, and never reject, when the next unit may start. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<Result>>();

  run(key: string, work: Work<Result>): Promise<Result> {
    const waiting = this.#waiting.get(key);
    if (waiting) return waiting;
    const running = this.#running.get(key);
    if (!running) return this.#start(key, work);
    const next = running.then(() => {
      this.#waiting.delete(key);
      return this.#start(key, work);
    });
    this.#waiting.set(key, next);
    return next;
  }

  #start(key: string, work: Work<Result>): Promise<Result> {
    const { promise: freed, resolve: free } = Promise.withResolvers<void>();
    this.#running.set(
      key,
      freed.then(() => {
        this.#running.delete(key);
      }),
    );
    return work(free).finally(free);
  }
}
