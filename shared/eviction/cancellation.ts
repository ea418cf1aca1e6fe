import type { EpochMs } from './identity.ts';
import type { EvictionRecord, TimedTaint } from './records.ts';

/** Why a scheduled eviction will not happen. */
export type CancelReason = 'taint-removed' | 'tolerated-forever' | 'pod-gone';

export interface Cancellation {
  /** The record as it is to be stored. */
  readonly record: EvictionRecord;
  readonly because: CancelReason;
}

/**
 * Whether a cancellation is worth an Event: not for a pod that vanished when it was due already, because that
 * is what an eviction looks like from outside.
 */
export function isAnnounced({ record, because }: Cancellation, observedAt: EpochMs): boolean {
  return because !== 'pod-gone' || record.fireAt > observedAt;
}

/** Why a pod that was scheduled has no deadline any more: the taints that set it went, or are now tolerated. */
export function whyCancelled(record: EvictionRecord, taints: readonly TimedTaint[]): CancelReason {
  const identities = new Set(taints.map((taint) => `${taint.key}:${taint.effect}`));
  return record.because.some((text) => identities.has(withoutValue(text)))
    ? 'tolerated-forever'
    : 'taint-removed';
}

/** `key=value:effect` → `key:effect`. */
const withoutValue = (taint: string): string => taint.replace(/=.*:/, ':');
