import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The maximum difference between clocks synchronized by NTP, and their maximum drift in parts per million. */
const MAX_OFFSET_MS = 900;
const MAX_DRIFT = 100e-6;

/** A process's own clock: slightly off, and changed when a user sets it. Its monotonic clock is never set. */
export class ProcessClock implements Clock {
  readonly #world: Clock;
  readonly #startedAt: EpochMs;
  readonly #offsetMs: number;
  readonly #drift: number;
  readonly #setTo: () => number;

  /** `setTo`: the number of milliseconds by which the clock is currently set ahead, or behind if negative. */
  constructor(world: Clock, random: SeededRandom, setTo: () => number) {
    this.#world = world;
    this.#startedAt = world.now();
    this.#offsetMs = random.between(-MAX_OFFSET_MS, MAX_OFFSET_MS);
    this.#drift = (random.next() * 2 - 1) * MAX_DRIFT;
    this.#setTo = setTo;
  }

  now(): EpochMs {
    const world = this.#world.now();
    return Math.round(world + this.#offsetMs + this.#drift * (world - this.#startedAt) + this.#setTo());
  }

  stopwatch(): number {
    return (this.#world.now() - this.#startedAt) * (1 + this.#drift);
  }
}
