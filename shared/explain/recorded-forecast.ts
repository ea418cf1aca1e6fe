import { meansOf } from '#shared/eviction/budget.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { downSince, findGate, isTripOf, mayStillHold, withoutTraits } from '#shared/eviction/gate.ts';
import type { Rules, Trip } from '#shared/eviction/policy.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Forecast, gaveUp, retrying } from './forecast.ts';
import { allGates } from './gates.ts';

/** The stored data of a node that its pods depend on, and its zone if it is known. */
export type Stored = Pick<Partition, 'ref' | 'node' | 'scheduled'> & { readonly zone?: string | undefined };

/**
 * Finds all gates of a pod, now or once due, by stored data. Gates that depend on traits, Lease, or an unknown zone,
 * which only the cluster shows, hold only pods that were already found held by them.
 */
export function storedGates(
  { ref, zone, node, scheduled }: Stored,
  rules: Rules,
  now: EpochMs,
): (record: EvictionRecord) => readonly EvictionGate[] {
  const inZone =
    zone !== undefined ||
    [...scheduled.values()].some(({ held }) => held?.by.kind === 'guard' && held.by.scope === 'zone');
  const trips = rules.trips.filter(({ scope }) => scope !== 'zone' || inZone);
  const seen = withoutTraits({ ...rules, trips });
  return (record) => {
    const { dueAt, causes, held } = record;
    const dueBy = causes.map(({ taint }) => taint.key);
    const due = { node: ref.node, zone, downSince: downSince(node?.taints), dueBy, record, traits: record };
    const gates = allGates(seen, (left) =>
      [findGate(left, due, Math.max(now, dueAt))].filter((by) => by !== undefined),
    );
    if (!held || gates.some(({ kind }) => kind === held.by.kind)) return gates;
    return isOver(held.by, rules.trips) || !mayStillHold(held.by, rules, now) ? gates : [...gates, held.by];
  };
}

const isOver = (gate: EvictionGate, trips: readonly Trip[]): boolean =>
  gate.kind === 'guard' && !trips.some((trip) => isTripOf(gate, trip));

/** The forecast of a pod that can't be read, by stored data alone. */
export function recordedForecast(
  record: EvictionRecord,
  stored: Stored,
  rules: Rules,
  now: EpochMs,
): Forecast {
  const { dueAt, causes, gaveUpAt, blocked } = record;
  if (gaveUpAt !== undefined) return gaveUp(record, gaveUpAt);
  const [gate] = storedGates(stored, rules, now)(record);
  if (gate) return { kind: 'held', dueAt, causes, by: gate, before: [] };
  const { method, evictionRate } = rules.policy;
  const next = Math.max(now, momentOf(record, stored.node) ?? now);
  const dueBy = causes.map(({ taint }) => taint.key);
  const nodeGone = stored.node?.deletedAt !== undefined;
  const means = meansOf(method, { dueBy, nodeGone, namespaceTerminating: false, blocked }, next);
  const last =
    blocked && means === 'evict' && method.kind === 'evict' ? { ...blocked, ...method } : undefined;
  const due = { dueAt, causes, ...(last ? { rejected: last.reason } : {}) };
  if (last?.onTimeout === 'fail') return { kind: 'blocked', ...due, by: [] };
  return {
    kind: 'evict',
    ...due,
    at: last ? last.since + last.timeoutMs : next,
    by: last ? 'delete' : means,
    heldBy: [],
    ...(evictionRate === undefined ? {} : { pacedBy: 'evictionRate' }),
    blockedBy: [],
    ...retrying(record, stored.node ?? {}, now),
  };
}
