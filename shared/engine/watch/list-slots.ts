interface Lane {
  underWay: number;
  /** Number of the last slot that the cluster got; 0: none yet. */
  lastSlot: number;
  readonly waiting: (() => void)[];
}

/**
 * A free slot goes to the cluster with the fewest slots, among those to the one whose last slot is oldest: a cluster
 * whose work hangs gets no further ones before the others. A cluster's own work runs in the order of its requests.
 */
export class ListSlots {
  #free: number;
  #given = 0;
  readonly #lanes = new WeakMap<object, Lane>();
  readonly #waiting = new Set<Lane>();

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(cluster: object, work: () => Promise<T>): Promise<T> {
    const lane = this.#laneOf(cluster);
    const { promise, resolve } = Promise.withResolvers<void>();
    lane.waiting.push(resolve);
    this.#waiting.add(lane);
    this.#giveSlots();
    await promise;
    try {
      return await work();
    } finally {
      lane.underWay -= 1;
      this.#free += 1;
      this.#giveSlots();
    }
  }

  #laneOf(cluster: object): Lane {
    const known = this.#lanes.get(cluster);
    if (known) return known;
    const lane: Lane = { underWay: 0, lastSlot: 0, waiting: [] };
    this.#lanes.set(cluster, lane);
    return lane;
  }

  #giveSlots(): void {
    while (this.#free > 0) {
      const [next] = [...this.#waiting].sort((a, b) => a.underWay - b.underWay || a.lastSlot - b.lastSlot);
      if (!next) return;
      this.#free -= 1;
      this.#given += 1;
      next.underWay += 1;
      next.lastSlot = this.#given;
      next.waiting.shift()?.();
      if (next.waiting.length === 0) this.#waiting.delete(next);
    }
  }
}
