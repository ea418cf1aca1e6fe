import type { EpochMs } from './identity.ts';
import type { CancelReason, Ending, EvictionRecord, Reason, TimedTaint } from './records.ts';

/**
 * Whether a cancellation is worth an Event: not for a pod that vanished when it was due already, because that
 * is what an eviction looks like from outside.
 */
export function isAnnounced({ cancelled, fireAt }: Ending, observedAt: EpochMs): boolean {
  return cancelled !== 'pod-gone' || fireAt > observedAt;
}

/** Why a pod that was scheduled has no deadline any more: the taints that set it went, or are now tolerated. */
export function whyCancelled(record: EvictionRecord, taints: readonly TimedTaint[]): CancelReason {
  const there = ({ taint: { key, effect } }: Reason) =>
    taints.some((taint) => taint.key === key && taint.effect === effect);
  return record.reasons.some(there) ? 'tolerated-forever' : 'taint-removed';
}
