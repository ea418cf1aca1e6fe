import type { EpochMs } from './epoch-ms.ts';

/** Milliseconds since some moment, for durations: unlike a clock it is never set, so it never leaps or goes back. */
export type Stopwatch = () => number;

/** The time, so that tests can drive it. */
export interface Clock {
  now(): EpochMs;
  /** Absent: the clock is never set, and measures durations, too. */
  stopwatch?(): number;
}

export const systemStopwatch: Stopwatch = () => performance.now();

export const systemClock: Clock = { now: () => Date.now(), stopwatch: systemStopwatch };

/** The time of a clock's stopwatch. */
export const stopwatchMs = (clock: Clock): number => clock.stopwatch?.() ?? clock.now();
