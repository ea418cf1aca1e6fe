/**
 * Lets so many run at once and no more. The others wait for their turn: those in a hurry before those with time,
 * each kind in the order in which it came.
 */
export class PrioritySemaphore {
  #free: number;
  readonly #hurried: (() => void)[] = [];
  readonly #patient: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Runs `work` when its turn has come; resolves or rejects as it does. */
  async run<T>(work: () => Promise<T>, { inHurry }: { readonly inHurry: boolean }): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => (inHurry ? this.#hurried : this.#patient).push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#hurried.shift() ?? this.#patient.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
