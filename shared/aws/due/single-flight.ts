/** One piece of work. It calls `free` once the next one may start; at the latest its end does. */
export type Work<Result> = (free: () => void) => Promise<Result>;

/**
 * Does one piece of work per key at a time. Whoever asks while one is under way shares the one after it, which starts
 * later than the asking and so sees all that the asker knows of: a node on which pods fall due in quick succession
 * is looked at once for many of them, and no pod is deleted by two passes at once.
 */
export class SingleFlight<Result> {
  /** Resolve, and never reject, when the next one may start. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<Result>>();

  /** Resolves or rejects as the work does that the caller got. */
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
