/** One pass. It calls `free` once the next one may start; at the latest its end does. */
export type Pass = (free: () => void) => Promise<void>;

/**
 * Runs one pass per key at a time. Whoever asks while a pass runs shares the one after it, which starts later
 * than the asking and so sees all that the asker knows of: a node on which pods fall due in quick succession
 * is looked at once for many of them, and no pod is deleted by two passes at once.
 */
export class SingleFlight {
  /** Resolve, and never reject, when the next pass may start. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  /** Resolves or rejects as the pass does that the caller got. */
  run(key: string, pass: Pass): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (waiting) return waiting;
    const running = this.#running.get(key);
    if (!running) return this.#start(key, pass);
    const next = running.then(() => {
      this.#waiting.delete(key);
      return this.#start(key, pass);
    });
    this.#waiting.set(key, next);
    return next;
  }

  #start(key: string, pass: Pass): Promise<void> {
    const { promise: freed, resolve: free } = Promise.withResolvers<void>();
    this.#running.set(
      key,
      freed.then(() => {
        this.#running.delete(key);
      }),
    );
    return pass(free).finally(free);
  }
}
