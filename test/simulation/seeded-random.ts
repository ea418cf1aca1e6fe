/** Random numbers that a seed reproduces (mulberry32). */
export class SeededRandom {
  readonly #seed: number;
  #state: number;
  #now: (() => number) | undefined;
  #moment = 0;

  /** `seed`: any 32-bit integer. */
  constructor(seed: number) {
    this.#seed = seed;
    this.#state = seed | 0;
  }

  /** Gives each time (of `now`) its own numbers from now on: leaving out the events at one time changes nothing at any other. */
  followMoments(now: () => number): void {
    this.#now = now;
  }

  /** Returns a number from 0 to 1, 1 excluded. */
  readonly next = (): number => {
    const moment = this.#now?.() ?? 0;
    if (moment !== this.#moment) {
      this.#moment = moment;
      this.#state =
        Math.imul(this.#seed ^ Math.imul(moment | 0, 0x9e3779b1), 0x85ebca6b) ^ (moment / 2 ** 32);
    }
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };

  /** Returns a whole number, both ends included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item;
  pick<Item>(items: readonly Item[]): Item | undefined;
  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.between(0, items.length - 1)];
  }
}
