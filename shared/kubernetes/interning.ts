/**
 * Hands out one shared object per key, so that what thousands of pods have in common is kept once. When it is
 * full it forgets everything and starts over: sharing is a matter of memory only, and what is common is soon
 * back, while one-off values cannot fill the memory.
 */
export class Interner<T> {
  readonly #limit: number;
  readonly #shared = new Map<string, T>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The object known under `key`, or else what `make` makes, from now on. */
  get(key: string, make: () => T): T {
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    if (this.#shared.size >= this.#limit) this.#shared.clear();
    const made = make();
    this.#shared.set(key, made);
    return made;
  }
}
