/** Work on one thing, by its name, is done one piece after the other; work on different things at once. */
export class OneAtATime {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Does the work when all that was begun on that thing before is over, however that ended. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const working = before === undefined ? work() : before.then(work);
    const over = working.catch(() => undefined);
    this.#last.set(name, over);
    try {
      return await working;
    } finally {
      if (this.#last.get(name) === over) this.#last.delete(name);
    }
  }
}
