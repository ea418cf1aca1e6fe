/** Limits concurrent tasks. Urgent ones take their turn before patient ones, each kind in the order of arrival. */
export class PrioritySemaphore {
  #free: number;
  readonly #hurried: (() => void)[] = [];
  readonly #patient: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

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
