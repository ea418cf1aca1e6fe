import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SeededRandom } from './seeded-random.ts';

/** Clocks that are kept by NTP differ by so much, and drift by so many parts of a million. */
const MAX_OFFSET_MS = 900;
const MAX_DRIFT = 100e-6;

/** A process's own view of the time: a little off, and as far as somebody set it. Its stopwatch is never set. */
export class ProcessClock implements Clock {
  readonly #world: Clock;
  readonly #startedAt: EpochMs;
  readonly #offsetMs: number;
  readonly #drift: number;
  readonly #setTo: () => number;

  /** `setTo`: by how many milliseconds it is set ahead now, or behind. */
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
