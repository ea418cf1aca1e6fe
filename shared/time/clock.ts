import type { EpochMs } from '#shared/eviction/identity.ts';

/** The time, so that tests can drive it. */
export interface Clock {
  now(): EpochMs;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Milliseconds since some moment, for durations: unlike a clock it is never set, so it never leaps or goes back. */
export type Stopwatch = () => number;

export const systemStopwatch: Stopwatch = () => performance.now();
