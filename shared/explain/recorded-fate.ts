import { mayStillHold, wholeBrake } from '#shared/eviction/brake.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import { type Fate, failing, gaveUp } from './fate.ts';

/** What becomes of a pod that cannot be looked at, by what is stored of it and its node alone. */
export function recordedFate(
  record: EvictionRecord,
  node: NodeState | undefined,
  rules: Rules,
  now: EpochMs,
): Fate {
  const { fireAt: dueAt, reasons, held, gaveUpAt } = record;
  if (gaveUpAt !== undefined) return gaveUp(record, gaveUpAt);
  const stillHeld = held && mayStillHold(held.by, rules, now) ? held.by : undefined;
  const by = wholeBrake(rules, Math.max(now, dueAt)) ?? stillHeld;
  if (by) return { kind: 'held', dueAt, reasons, by, before: [] };
  return {
    ...{ kind: 'goes', at: Math.max(now, momentOf(record, node) ?? now), by: rules.policy.method.kind },
    ...{ dueAt, reasons, heldBy: [], blockedBy: [] },
    ...failing(record, node ?? {}, now),
  };
}
