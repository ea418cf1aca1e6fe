import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SimulationClock } from './simulation-clock.ts';

/** The planned actions of a history, numbered as they are planned. A left-out action does not happen. */
export class Plans {
  readonly #clock: SimulationClock;
  readonly #leftOut: ReadonlySet<number>;
  #planned = 0;

  constructor(clock: SimulationClock, leftOut: Iterable<number> = []) {
    this.#clock = clock;
    this.#leftOut = new Set(leftOut);
  }

  /** The number of plans so far. */
  get planned(): number {
    return this.#planned;
  }

  add(at: EpochMs, happen: () => void): void {
    const number = this.#planned;
    this.#planned += 1;
    if (!this.#leftOut.has(number)) this.#clock.setAlarm(at, happen);
  }
}
