import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { clusterGate, isTripOf, readsCluster, readsTraits } from '#shared/eviction/gate.ts';
import { watchedTrips } from '#shared/eviction/guard.ts';
import { nodeKey } from '#shared/eviction/identity.ts';
import { looserSettings } from '#shared/eviction/looser.ts';
import type { Policy, Rules, Trip } from '#shared/eviction/policy.ts';
import { drainsOnRelease, type EvictionRecord } from '#shared/eviction/records.ts';
import { storedGates } from '#shared/explain/recorded-forecast.ts';
import { changedSettings } from '#shared/state/policy-change.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { MATCHING, type PendingEviction } from '../look/pending.ts';
import type { Judged } from './effect.ts';

/** The effect of an act on the pending evictions of a cluster. */
export interface Rehearsed {
  readonly before: Policy;
  readonly after: Policy;
  /** Zones with unknown nodes whose trip ends, if neither a trip of the cluster nor a stop holds their pods. */
  readonly freedZones: readonly string[];
  readonly judged: readonly Judged[];
  /** Possible effects that can't be counted, one sentence each. */
  readonly uncounted: readonly string[];
}

/** Evaluates the pending evictions of a cluster before and after a change of its rules. */
export function rehearsed(
  [stored, changed]: readonly [before: StoredRules, after: StoredRules],
  pending: readonly PendingEviction[],
  now: EpochMs,
): Rehearsed {
  const [rules, next] = [watched(rulesOf(stored, MATCHING)), watched(rulesOf(changed, MATCHING))];
  // The act read the rules again: the same trip is another object.
  const ended = rules.trips.filter((trip) => !next.trips.some((kept) => isTripOf(kept, trip)));
  const looser = new Set(looserSettings(rules.policy, next.policy, now));
  // With the same revisions, gates that only the cluster shows stay as they were found.
  const { policyRevision, guardRevision } = rules;
  const left = pending.map((eviction) => ({
    ...eviction,
    record: withoutFound(eviction.record, looser, ended),
  }));
  const after = gatesUnder({ ...next, policyRevision, guardRevision }, left, now);
  const before = gatesUnder(rules, pending, now);
  const judged = pending.map((eviction) => ({ eviction, before: before(eviction), after: after(eviction) }));
  const uncounted = uncountedText(rules, next, { judged, looser, now });
  const isHeld = clusterGate(next, now) ?? next.trips.find(({ scope }) => scope === 'cluster');
  const freedZones =
    isHeld || pending.every(({ zone }) => zone !== undefined) ? [] : ended.flatMap(({ zone = [] }) => zone);
  return { before: rules.policy, after: next.policy, freedZones, judged, uncounted };
}

/** Returns rules without the trips that a relay is about to end. */
const watched = (rules: Rules): Rules => ({ ...rules, trips: watchedTrips(rules.policy.guard, rules.trips) });

function gatesUnder(rules: Rules, pending: readonly PendingEviction[], now: EpochMs) {
  const nodes = [...Map.groupBy(pending, nodeKey).values()].flatMap(([ref, ...others]) => {
    if (!ref) return [];
    const scheduled = new Map([ref, ...others].map(({ record }) => [record.uid, record]));
    const gatesOf = storedGates({ ref, zone: ref.zone, node: ref.state, scheduled }, rules, now);
    return [...scheduled.values()].map((record) => [record.uid, gatesOf(record)] as const);
  });
  const gates = new Map(nodes);
  return ({ record }: PendingEviction): readonly EvictionGate[] => gates.get(record.uid) ?? [];
}

/** Gates that a relay found in the cluster, and the settings that they depend on. */
const FOUND_BY: Readonly<Partial<Record<EvictionGate['kind'], readonly (keyof Policy)[]>>> = {
  excluded: ['exclude', 'include'],
  'node-alive': ['requireExpiredLease'],
  'workload-limit': ['maxEvictionsPerWorkload'],
};

/** Forgets a gate that was found under settings that are looser now. Each taint of a pod may have another gate. */
function withoutFound(
  record: EvictionRecord,
  looser: ReadonlySet<keyof Policy>,
  ended: readonly Trip[],
): EvictionRecord {
  const { held, ...rest } = record;
  if (!held) return record;
  const { by: gate } = held;
  const own = gate.kind === 'guard' ? [] : FOUND_BY[gate.kind];
  if (!own) return record;
  const isOfMany = record.causes.length > 1;
  const settings = isOfMany ? Object.values(FOUND_BY).flat() : own;
  const isEnded = (trip: Trip) => isOfMany || (gate.kind === 'guard' && isTripOf(gate, trip));
  return ended.some(isEnded) || settings.some((setting) => looser.has(setting)) ? rest : record;
}

/** Settings whose effect on pending evictions a preview counts, or states by a sentence of its own. */
type OfGates = 'mode' | 'guard' | 'exclude' | 'include' | 'requireExpiredLease';
type OfPace = 'evictionRate' | 'releaseRate' | 'maxEvictionsPerWorkload' | 'method' | 'giveUpAfterMs';
/** The other settings add, cancel, or move evictions. */
const SCHEDULING: Readonly<Record<Exclude<keyof Policy, OfGates | OfPace>, true>> = {
  treatAsNoExecute: true,
  tolerationSecondsOverrides: true,
};

interface Found extends Pick<Rehearsed, 'judged'> {
  /** Settings whose change could free or hasten evictions. */
  readonly looser: ReadonlySet<keyof Policy>;
  readonly now: EpochMs;
}

function uncountedText(
  { policy: before, holds }: Rules,
  { policy: after, trips, holds: kept }: Rules,
  { judged, looser, now }: Found,
) {
  const changed = changedSettings(before, after);
  const has = (name: string) => changed.some(({ setting }) => setting.split('.')[0] === name);
  const scheduling = Object.keys(SCHEDULING).filter(has);
  const isFreed = judged.some((each) => each.before.length > 0 && each.after.length === 0);
  const hastened = judged.filter(
    ({ eviction: { record }, ...gates }) =>
      gates.before.length + gates.after.length === 0 &&
      record.gaveUpAt === undefined &&
      record.dueAt <= now &&
      (looser.has('evictionRate') ||
        (looser.has('releaseRate') && drainsOnRelease(record)) ||
        (looser.has('method') && record.blocked !== undefined)),
  ).length;
  const selections = [before, after].flatMap(({ exclude, include }) => [...exclude, ...include]);
  return [
    hastened > 0 && `${hastened === 1 ? '1 due pod' : `${hastened} due pods`} may be evicted sooner.`,
    scheduling.length > 0 &&
      `Evictions that ${scheduling.join(' and ')} would add, cancel, or move are not counted.`,
    (isFreed || has('exclude') || has('include')) &&
      selections.some(readsTraits) &&
      unknown('Labels, annotations, and priority classes of pods', 'exclude or include would keep by them'),
    (isFreed || has('maxEvictionsPerWorkload')) &&
      after.maxEvictionsPerWorkload !== undefined &&
      unknown('Evictions of workloads', 'maxEvictionsPerWorkload would keep'),
    has('requireExpiredLease') &&
      after.requireExpiredLease &&
      unknown('Leases of nodes', 'requireExpiredLease would keep'),
    judged.length > 0 &&
      [...new Set(holds).symmetricDifference(new Set(kept)), ...(isFreed ? kept : [])].some(readsCluster) &&
      'Labels of pods and zones of nodes are not known here: a hold by them is counted for pods that it already holds.',
    isFreed &&
      trips.some(({ scope }) => scope === 'zone') &&
      judged.some(({ eviction }) => eviction.zone === undefined) &&
      unknown('Zones of nodes', 'the guard would keep by zone'),
    !after.guard.dryRun &&
      changed.some(({ setting, next }) => setting.startsWith('guard') && next !== 'off') &&
      'Affected nodes are not known here: evictions are not counted that the guard holds under its new limits, or releases after five minutes below half of them.',
    looser.has('exclude') &&
      after.exclude.some(({ until }) => until !== undefined) &&
      'Evictions after the end of an entry of exclude are not counted.',
  ].filter((text) => text !== false);
}

const unknown = (what: string, keeper: string): string =>
  `${what} are not known here: pods that ${keeper} are counted as evicted.`;
