import { type Cause, type Deadline, deadlineFor, saturate } from '#shared/taints/deadline.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Rules } from './policy.ts';
import type { DeadlineCause, EvictionRecord, TimedTaint } from './records.ts';

/** When a pod must go, and why. */
export interface PodDeadline {
  readonly at: EpochMs;
  readonly reasons: readonly DeadlineCause[];
}

/**
 * Decides any number of pods of one node: returns a function from a pod's tolerations and binding time to its
 * deadline, `undefined` when nothing calls for its eviction. The taints of a deleted node (`deletedAt`) concern
 * only the pods that were bound while it existed.
 */
export function podDeadlines(
  taints: readonly TimedTaint[],
  deletedAt: EpochMs | undefined,
  { matching, policy }: Pick<Rules, 'matching' | 'policy'>,
): (tolerations: readonly Toleration[], podSince: EpochMs) => PodDeadline | undefined {
  const deadline = deadlineFor(taints, matching, policy.tolerationSeconds);
  // Most pods of a node share a deadline with others, and what is said of it.
  const told = new Map<Deadline<TimedTaint>, PodDeadline>();
  return (tolerations, podSince) => {
    // Equivalent mutant (ConditionalExpression): No number is more than what is undefined: the check is for
    // the type checker.
    if (deletedAt !== undefined && podSince > deletedAt) return undefined;
    const found = deadline(tolerations, podSince);
    if (!found) return undefined;
    let said = told.get(found);
    // Equivalent mutant (ConditionalExpression): This spares saying the same of each pod.
    if (!said) {
      said = { at: saturate(found.atMs), reasons: found.because.map(reasonOf) };
      // Equivalent mutant (CallExpression): This spares saying the same of each pod.
      told.set(found, said);
    }
    return said;
  };
}

function reasonOf({ taint, toleration, seconds, policy }: Cause<TimedTaint>): DeadlineCause {
  const { key, value, effect, since, known } = taint;
  return {
    taint: value ? { key, value, effect } : { key, effect },
    since,
    known,
    ...(toleration === undefined ? {} : { toleration }),
    // Equivalent mutant (EqualityOperator): Where they are equal, either is the number.
    seconds: seconds < MAX_SECONDS ? Number(seconds) : Number(MAX_SECONDS),
    ...(policy === undefined ? {} : { policy }),
  };
}

/** More than that, which no date holds, is not told apart. */
const MAX_SECONDS = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The moment to store: the deadline, but a deadline already past when it was heard of falls due at that moment,
 * once, and is not moved again by later deltas. Never before the deadline.
 */
export function dueAt(deadlineAt: EpochMs, observedAt: EpochMs, record: EvictionRecord | undefined): EpochMs {
  return Math.max(deadlineAt, Math.min(record?.fireAt ?? observedAt, observedAt));
}
