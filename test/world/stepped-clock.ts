import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A clock that can be set, and a stopwatch that stands still while its process is suspended. */
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

  /** Lets time pass. */
  pass(ms: number): void {
    this.#now += ms;
    this.#stopwatchMs += ms;
  }

  /** Sets the wall clock forward, or back. Time also seems to jump for a process that was suspended. */
  set(byMs: number): void {
    this.#now += byMs;
  }
}
