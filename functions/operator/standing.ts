import { targetText } from '#shared/clusters/operator.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import { type Brake, brakeOn } from '#shared/eviction/brake.ts';
import type { EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { BRAKE_KINDS, wordsOf } from '#shared/explain/brake-words.ts';
import { timeText } from '#shared/time/time-text.ts';

/**
 * How an eviction stands: its moment is to come (`waiting`), it is due and goes (`due`), it is due and held (by what), a
 * disruption budget, admission or the rate forbids it for now, it failed and is tried again, or was given up.
 */
export const STANDINGS = [
  'waiting',
  'due',
  ...BRAKE_KINDS,
  'budget',
  'admission',
  'rate',
  'failing',
  'gave-up',
] as const;
export type PendingStanding = (typeof STANDINGS)[number];

/** How a record stands at `now`, and what there is to say of that. */
export function standingOf(
  record: EvictionRecord,
  rulings: Rulings | undefined,
  now: EpochMs,
): { readonly standing: PendingStanding; readonly note: string } {
  const { held, gaveUpAt, failure, blocked, turnAt = 0, fireAt } = record;
  if (gaveUpAt !== undefined)
    return { standing: 'gave-up', note: failure?.error ?? 'it failed for too long' };
  if (held) return { standing: held.by.kind, note: heldText(held.by, rulings) };
  if (failure) return { standing: 'failing', note: failure.error };
  if (blocked) return { standing: blocked.by ?? 'budget', note: blocked.reason };
  if (fireAt > now) return { standing: 'waiting', note: '' };
  return { standing: turnAt > now ? 'rate' : 'due', note: '' };
}

function heldText(by: Brake, rulings: Rulings | undefined): string {
  switch (by.kind) {
    case 'observe':
    case 'paused':
    case 'excluded':
      return '';
    case 'node-alive':
      return `its Lease was renewed ${timeText(by.renewedAt)}`;
    case 'stopped': {
      const stop = by.scope === 'fleet' ? rulings?.fleetStop : rulings?.orders.stop;
      return stop ? `${stop.who}: ${stop.why}` : '';
    }
    case 'hold': {
      const hold = rulings?.orders.holds.find(({ id }) => id === by.id);
      return hold ? `${by.id}, ${targetText(hold.target)}: ${hold.why}` : by.id;
    }
    case 'guard':
      return by.scope;
    default:
      return wordsOf(by).name(by);
  }
}

/**
 * What would forbid a record at `moment`, as rules are now. What policy says by labels is not seen: nobody stores the labels of
 * pods that are not due.
 */
export const brakeThen = (
  record: EvictionRecord,
  node: NodeName,
  rules: Rules,
  moment: EpochMs,
): Brake | undefined =>
  brakeOn(
    { ...rules, policy: withoutLabels(rules.policy) },
    { node, dueBy: record.reasons.map(({ taint }) => taint.key), record, labels: {} },
    moment,
  );

const withoutLabels = (policy: Policy): Policy => ({
  ...policy,
  exclude: policy.exclude.filter(({ labels }) => labels === undefined),
  only: policy.only.some(({ labels }) => labels !== undefined) ? [] : policy.only,
});
