import { type Clock, stopwatchMs } from './clock.ts';
import type { EpochMs } from './epoch-ms.ts';

/**
 * The time since the age was created, between two bounds. Neither clock of a process shows it alone: the wall clock may
 * be set, and the stopwatch stops while the process is frozen.
 */
export class Age {
  readonly #clock: Clock;
  readonly #at: EpochMs;
  readonly #stopwatchMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#at = clock.now();
    this.#stopwatchMs = stopwatchMs(clock);
  }

  /** The longer of stopwatch and wall clock: for data that expires, such as a lease or an answer that was read. */
  get atMostMs(): number {
    const ms = Math.max(this.atLeastMs, this.#clock.now() - this.#at);
    // Only a clock without a stopwatch goes back; the age is unknown then.
    return ms < 0 ? Number.POSITIVE_INFINITY : ms;
  }

  /** The stopwatch's time: for actions that must wait, such as a retry or the reset of a guard. */
  get atLeastMs(): number {
    return stopwatchMs(this.#clock) - this.#stopwatchMs;
  }
}
