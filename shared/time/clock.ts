import type { EpochMs } from './epoch-ms.ts';

/**
 * Returns milliseconds since some time, for durations. Unlike a clock, it is never set, so it never jumps or runs
 * backwards.
 */
export type Stopwatch = () => number;

/** The time, as an interface so that tests can control it. */
export interface Clock {
  now(): EpochMs;
  /** Absent: the clock is never set, and measures durations, too. */
  stopwatch?(): number;
}

export const systemStopwatch: Stopwatch = () => performance.now();

export const systemClock: Clock = { now: () => Date.now(), stopwatch: systemStopwatch };

/** Returns the time of a clock's stopwatch. */
export const stopwatchMs = (clock: Clock): number => clock.stopwatch?.() ?? clock.now();
