import { deadlineFor, saturate } from '#shared/taints/deadline.ts';
import { type MatchOptions, type Toleration, taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from './identity.ts';
import type { EvictionRecord, TimedTaint } from './records.ts';

/** When a pod must go, and the taints that say so, as kubectl prints them. */
export interface PodDeadline {
  readonly at: EpochMs;
  readonly because: readonly string[];
}

/**
 * Decides any number of pods of one node: returns a function from a pod's tolerations and binding time to its
 * deadline, `undefined` when nothing calls for its eviction. The taints of a deleted node (`deletedAt`) concern
 * only the pods that were bound while it existed.
 */
export function podDeadlines(
  taints: readonly TimedTaint[],
  deletedAt: EpochMs | undefined,
  options: MatchOptions,
): (tolerations: readonly Toleration[], podSince: EpochMs) => PodDeadline | undefined {
  const deadline = deadlineFor(taints, options);
  return (tolerations, podSince) => {
    if (deletedAt !== undefined && podSince > deletedAt) return undefined;
    const found = deadline(tolerations, podSince);
    return found && { at: saturate(found.atMs), because: found.because.map(({ taint }) => taintText(taint)) };
  };
}

/**
 * The moment to store: the deadline, but a deadline already past when it was heard of falls due at that moment,
 * once, and is not moved again by later deltas. Never before the deadline.
 */
export function dueAt(
  deadlineAt: EpochMs,
  observedAt: EpochMs,
  scheduled: EvictionRecord | undefined,
): EpochMs {
  return Math.max(deadlineAt, Math.min(scheduled?.fireAt ?? observedAt, observedAt));
}
