import type { EpochMs } from '#shared/eviction/identity.ts';

/** The time, so that tests can drive it. */
export interface Clock {
  now(): EpochMs;
}

export const systemClock: Clock = { now: () => Date.now() };
