import { defined } from '#shared/defined.ts';
import { type Deadline, type DeadlineCause, deadlineFor, saturate } from '#shared/taints/deadline.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Rules } from './policy.ts';
import type { Cause, EvictionRecord, TimedTaint } from './records.ts';

export interface PodDeadline {
  readonly at: EpochMs;
  readonly causes: readonly Cause[];
}

/**
 * Returns a function from tolerations and binding time to the deadline of a node's pods; `undefined`: none. Taints of a
 * deleted node (`deletedAt`) apply only to pods that were bound while it existed.
 */
export function podDeadlines(
  taints: readonly TimedTaint[],
  deletedAt: EpochMs | undefined,
  { matching, policy }: Pick<Rules, 'matching' | 'policy'>,
): (tolerations: readonly Toleration[], podSince: EpochMs) => PodDeadline | undefined {
  const deadline = deadlineFor(taints, matching, policy.tolerationSecondsOverrides);
  // Most pods of a node share a deadline with others, so its description is made once.
  const described = new Map<Deadline<TimedTaint>, PodDeadline>();
  return (tolerations, podSince) => {
    if (deletedAt !== undefined && podSince > deletedAt) return undefined;
    const found = deadline(tolerations, podSince);
    if (!found) return undefined;
    let description = described.get(found);
    if (!description) {
      description = { at: saturate(found.atMs), causes: found.because.map(causeOf) };
      described.set(found, description);
    }
    return description;
  };
}

function causeOf({ taint, toleration, seconds, policy }: DeadlineCause<TimedTaint>): Cause {
  const { key, value, effect, since, known } = taint;
  return {
    taint: value ? { key, value, effect } : { key, effect },
    since,
    known,
    ...defined({ toleration }),
    seconds: seconds < MAX_SECONDS ? Number(seconds) : Number(MAX_SECONDS),
    ...defined({ policy }),
  };
}

/** No date can hold more seconds, so larger numbers are not distinguished. */
const MAX_SECONDS = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * A deadline that had passed when first observed is due at the observation, once; later deltas don't move it. The
 * result is never before the deadline.
 */
export function effectiveDeadline(
  deadlineAt: EpochMs,
  observedAt: EpochMs,
  record: EvictionRecord | undefined,
): EpochMs {
  return Math.max(deadlineAt, Math.min(record?.dueAt ?? observedAt, observedAt));
}
