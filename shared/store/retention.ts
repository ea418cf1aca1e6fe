import type { EpochMs } from '#shared/eviction/identity.ts';

/** How long a tombstone blocks its pod's key: longer than any queue of ours keeps a message (4 days). */
export const TOMBSTONE_SECONDS = 7 * 24 * 3600;

/**
 * How long after its deadline, or after it was written when that is later, a scheduled record is removed by TTL, which
 * `expiry` turns back into due work.
 */
export const SCHEDULED_GRACE_SECONDS = 3600;

/** The last second a JavaScript date can hold: deadlines are saturated to it, so the grace does not go beyond. */
const LAST_EPOCH_SECONDS = 8.64e12;

/** When a tombstone made now, or a node with nothing left to watch, may be removed; epoch seconds. */
export function tombstoneTtl(now: EpochMs): number {
  return ttlAfter(now, TOMBSTONE_SECONDS);
}

/** When a scheduled record, written now, that nothing evicted is removed, so that `expiry` hears of it; epoch seconds. */
export function scheduledTtl(fireAt: EpochMs, now: EpochMs): number {
  return ttlAfter(Math.max(fireAt, now), SCHEDULED_GRACE_SECONDS);
}

function ttlAfter(moment: EpochMs, seconds: number): number {
  return Math.min(Math.ceil(moment / 1000) + seconds, LAST_EPOCH_SECONDS);
}
