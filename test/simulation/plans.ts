import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SimulationClock } from './simulation-clock.ts';

/** What somebody is going to do in a history, numbered as it is planned; what is left out just does not happen. */
export class Plans {
  readonly #clock: SimulationClock;
  readonly #leftOut: ReadonlySet<number>;
  #planned = 0;

  constructor(clock: SimulationClock, leftOut: Iterable<number> = []) {
    this.#clock = clock;
    this.#leftOut = new Set(leftOut);
  }

  /** How many there are by now. */
  get planned(): number {
    return this.#planned;
  }

  add(at: EpochMs, happen: () => void): void {
    const number = this.#planned;
    this.#planned += 1;
    if (!this.#leftOut.has(number)) this.#clock.setAlarm(at, happen);
  }
}
