import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A clock that is set now and then, and a stopwatch that stands while its process is frozen. */
export class SteppedClock implements Required<Clock> {
  #now: EpochMs;
  #stopwatchMs = 0;

  constructor(now: EpochMs) {
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now;
  }

  stopwatch(): number {
    return this.#stopwatchMs;
  }

  /** Time passes. */
  pass(ms: number): void {
    this.#now += ms;
    this.#stopwatchMs += ms;
  }

  /** The wall clock is set forward, or back; as it seems to a frozen process, too. */
  set(byMs: number): void {
    this.#now += byMs;
  }
}
