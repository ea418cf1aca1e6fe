import { defined } from '#shared/defined.ts';
import { DOWN_KEYS, type LiveTaint, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterGate, EvictionGate, OfTaints } from './eviction-gate.ts';
import { earliest, type Owner, type PodTraits } from './facts.ts';
import type { NodeName } from './identity.ts';
import type { Lapse, NodeLife } from './node-life.ts';
import type { Hold, HoldTarget, Rules, Selection, Stop, Trip } from './policy.ts';
import type { EvictionRecord, NodeState } from './records.ts';
import type { LabelExpression, LabelSelector } from './selectors.ts';
import { INTERMEDIATE_OWNERS, matchesPattern } from './selectors.ts';

/** A node that was down for this long when the guard tripped did not cause the trip. */
export const DOWN_BEFORE_MS = 15 * 60_000;

export interface DuePod {
  readonly node: NodeName;
  /** Absent: the node is gone, or in no zone. */
  readonly zone?: string | undefined;
  /** When the node controller found the node down; absent: it did not. */
  readonly downSince?: EpochMs | undefined;
  /** Keys of the taints that are due by now; at least one. Each of them alone evicts the pod. */
  readonly dueBy: readonly string[];
  readonly record: Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'owner' | 'held' | 'recreated'>;
  readonly traits: PodTraits;
  /** `unread`: the Lease was not read yet. Absent: the node is gone, or its Lease does not count. */
  readonly life?: NodeLife | 'unread' | undefined;
}

/**
 * Returns the gate of a due pod; `undefined`: none. A gate of single taints (policy, guard, Lease) counts only if each
 * due taint has one. Observe mode is last: what it alone holds, enforce mode would evict.
 */
export function findGate(rules: Rules, pod: DuePod, now: EpochMs): EvictionGate | undefined {
  if (isObserved(rules)) return findGate(enforced(rules), pod, now) ?? { kind: 'observe' };
  const gate = clusterGate(rules, now) ?? holdOn(rules.holds, pod, now);
  if (gate) return gate;
  const { policyRevision: revision, guardRevision } = rules;
  const gates = pod.dueBy.map((key) => taintGate(rules, pod, key, now) ?? lifeOn(rules, pod, key, now));
  const [first] = gates;
  if (!first || gates.includes(undefined))
    return pod.record.recreated ? { kind: 'recreated' } : limitOn(rules, pod, now);
  const untils = gates.map((each) => each?.until).filter((until) => until !== undefined);
  const until = untils.length > 0 ? { until: Math.min(...untils) } : {};
  return { ...first, revision, guardRevision, ...until };
}

/**
 * Returns why the Lease does not keep a pod without a gate; `unread`: read it first. `undefined`: it does not matter.
 */
export function leaseNoteOn(rules: Rules, pod: DuePod, now: EpochMs): Lapse | 'unread' | undefined {
  const { life, dueBy } = pod;
  if (life === undefined || !asksLease(rules) || !dueBy.includes(NODE_UNREACHABLE)) return undefined;
  const isDecisive = dueBy.every((key) => key === NODE_UNREACHABLE || taintGate(rules, pod, key, now));
  if (!isDecisive) return undefined;
  // A node that was alive may have renewed its Lease since the Lease was last read.
  return life === 'unread' || life.kind === 'alive' ? 'unread' : life.because;
}

/** Reports whether policy evicts pods for the `unreachable` taint only after the node's Lease has expired. */
export const asksLease = ({ policy }: Pick<Rules, 'policy'>): boolean => policy.requireExpiredLease;

/**
 * Returns the gate of a due pod that can't be read. A gate that depends on its traits is unknown, unless it holds the
 * pod already. Without a zone, any may be the node's.
 */
export function storedGate(
  rules: Rules,
  {
    node,
    zone,
    taints,
    traits,
  }: Pick<DuePod, 'node' | 'zone'> & Partial<Pick<NodeState, 'taints'> & Pick<DuePod, 'traits'>>,
  record: DuePod['record'] & Pick<EvictionRecord, 'causes'>,
  now: EpochMs,
): EvictionGate | undefined {
  const { held, causes } = record;
  if (held && mayStillHold(held.by, rules, now)) return held.by;
  const dueBy = causes.map(({ taint }) => taint.key);
  const due = { node, zone, downSince: downSince(taints), dueBy, record, traits: traits ?? record };
  return findGate(traits ? rules : withoutTraits(rules), due, now);
}

export const downSince = (taints: readonly LiveTaint[] = []): EpochMs | undefined =>
  earliest(taints.filter(({ key }) => DOWN_KEYS.includes(key)).map(({ timeAdded }) => timeAdded));

/** Returns rules without those that depend on traits, or on the zone of a node. */
export function withoutTraits(rules: Rules): Rules {
  const { exclude, include } = rules.policy;
  const policy = {
    ...rules.policy,
    exclude: exclude.filter((each) => !readsTraits(each)),
    include: include.some(readsTraits) ? [] : include,
  };
  return { ...rules, policy, holds: rules.holds.filter((hold) => !readsCluster(hold)) };
}

/** Reports whether only the API server shows if a hold holds a pod. */
export const readsCluster = ({ target }: Hold): boolean => ['labels', 'zone'].includes(target.kind);

/** Reports whether only the API server shows if a selection selects a pod. */
export const readsTraits = ({ labels, annotations, priorityClassNames }: Selection): boolean =>
  (labels ?? annotations ?? priorityClassNames) !== undefined;

export const isObserved = ({ policy }: Pick<Rules, 'policy'>): boolean => policy.mode === 'observe';

const enforced = (rules: Rules): Rules =>
  isObserved(rules) ? { ...rules, policy: { ...rules.policy, mode: 'enforce' } } : rules;

/** Returns stops with the one that ends last first. */
export const longestFirst = (stops: readonly Stop[]): readonly Stop[] =>
  stops.toSorted((one, other) => endOf(other) - endOf(one));

export const endOf = ({ until }: Pick<Stop, 'until'>): EpochMs => until ?? Number.POSITIVE_INFINITY;

/** Returns the gate of all evictions in a cluster at `now`. An observed cluster has no evictions to stop. */
export function clusterGate({ policy, stops }: Rules, now: EpochMs): ClusterGate | undefined {
  if (policy.mode === 'observe') return { kind: 'observe' };
  const stop = stops.find(({ until }) => isOn(until, now));
  if (!stop) return undefined;
  const isOneOfSeveral =
    stops.filter(({ scope, until }) => scope === 'cluster' && isOn(until, now)).length > 1;
  return {
    kind: 'stopped',
    scope: stop.scope,
    ...defined({ until: stop.until, id: isOneOfSeveral ? stop.id : undefined }),
  };
}

/** Reports whether the gate of a held pod may still hold it. Otherwise, the pod must be reevaluated. */
export function mayStillHold(gate: EvictionGate, rules: Rules, now: EpochMs): boolean {
  switch (gate.kind) {
    case 'observe':
      return isObserved(rules);
    case 'stopped':
      return clusterGate(enforced(rules), now)?.kind === gate.kind;
    case 'hold':
      return rules.holds.some(({ id, until }) => id === gate.id && isOn(until, now));
    case 'excluded':
    case 'guard':
    case 'node-alive':
    case 'workload-limit':
      return (
        rules.policyRevision === gate.revision &&
        rules.guardRevision === gate.guardRevision &&
        isOn(gate.until, now)
      );
    case 'recreated':
      return true;
    default:
      return gate satisfies never;
  }
}

/** Reports whether a gate depends on the pod: on its traits, its controller, or the taints that evict it. */
export const isOfPod = (gate: EvictionGate): boolean => gate.kind === 'hold' || isOfTaints(gate);

/** Reports whether a gate depends on the taints that evict the pod. */
export const isOfTaints = (gate: EvictionGate): gate is Extract<EvictionGate, OfTaints> =>
  ['excluded', 'guard', 'node-alive', 'workload-limit'].includes(gate.kind);

/** Returns the next time after `now` at which the rules change without a write; `undefined`: none. */
export function nextExpiry({ policy, stops, holds }: Rules, now: EpochMs): EpochMs | undefined {
  const moments = [...stops, ...holds, ...policy.exclude, ...policy.include].map(({ until }) => until);
  return earliest(moments.filter((moment) => moment !== undefined && moment > now));
}

const untilOf = ({ until }: { readonly until?: EpochMs }) => (until === undefined ? {} : { until });

function holdOn(holds: readonly Hold[], pod: DuePod, now: EpochMs): EvictionGate | undefined {
  const hold = holds.find((each) => isOn(each.until, now) && isTarget(each.target, pod));
  return hold && { kind: 'hold', id: hold.id, ...untilOf(hold) };
}

export function isTarget(
  target: HoldTarget,
  { node, zone, record, traits }: Pick<DuePod, 'node' | 'zone' | 'record' | 'traits'>,
): boolean {
  switch (target.kind) {
    case 'node':
      return target.node === node;
    case 'namespace':
      return target.namespace === record.namespace;
    case 'labels':
      return (
        (target.namespace ?? record.namespace) === record.namespace &&
        matchesLabels(target.labels, traits.labels ?? {})
      );
    case 'zone':
      return isInZone(target.zone, zone);
    case 'workload':
      return target.namespace === record.namespace && isOf(target.owner, record.owner);
    case 'pod':
      return (
        target.namespace === record.namespace &&
        target.name === record.name &&
        (target.uid ?? record.uid) === record.uid
      );
    default:
      return target satisfies never;
  }
}

/** Upstream: `getReplicaSetName`, `getJobName` of their controllers. */
function isOf(workload: Owner, owner: Owner | undefined): boolean {
  if (owner?.kind === workload.kind) return owner.name === workload.name;
  const prefix = `${workload.name}-`;
  return (
    owner !== undefined &&
    owner.kind === INTERMEDIATE_OWNERS[workload.kind] &&
    owner.name.startsWith(prefix) &&
    !owner.name.slice(prefix.length).includes('-')
  );
}

type TaintGate =
  | { readonly kind: 'excluded'; readonly until?: EpochMs }
  | {
      readonly kind: 'guard';
      readonly scope: Trip['scope'];
      readonly trippedAt: EpochMs;
      readonly until?: never;
    };

const taintGate = (rules: Rules, pod: DuePod, key: string, now: EpochMs): TaintGate | undefined =>
  exclusion(rules, pod, key, now) ?? guardOn(rules.trips, pod, key);

function lifeOn(rules: Rules, { life }: DuePod, key: string, now: EpochMs) {
  if (key !== NODE_UNREACHABLE || life === undefined || life === 'unread' || !asksLease(rules))
    return undefined;
  if (life.kind !== 'alive' || life.until <= now) return undefined;
  return { ...life, kind: 'node-alive' as const };
}

/** Pods of a node that is out of service have no limit: such a node certainly does not run. */
function limitOn(rules: Rules, { dueBy, record: { held } }: DuePod, now: EpochMs): EvictionGate | undefined {
  const holder = held?.by;
  if (holder?.kind !== 'workload-limit' || dueBy.includes(NODE_OUT_OF_SERVICE)) return undefined;
  return mayStillHold(holder, rules, now) ? holder : undefined;
}

function exclusion({ policy }: Rules, pod: DuePod, key: string, now: EpochMs): TaintGate | undefined {
  const { exclude, include } = policy;
  const excluded = exclude.find((each) => selects(each, pod, key, now));
  if (excluded) return { kind: 'excluded', ...untilOf(excluded) };
  const named = include.length === 0 || include.some((each) => selects(each, pod, key, now));
  return named ? undefined : { kind: 'excluded' };
}

/** Reports whether a selection selects a pod that a taint with this key evicts. */
export function selects(
  { namespaces, until, ...selection }: Selection,
  { record: { namespace }, traits }: Pick<DuePod, 'record' | 'traits'>,
  key: string,
  now: EpochMs,
): boolean {
  return (
    isOn(until, now) &&
    (namespaces === undefined || namespaces.some((pattern) => matchesPattern(pattern, namespace))) &&
    isAmong(key, selection.taints) &&
    isAmong(traits.owner?.kind, selection.ownerKinds) &&
    isAmong(traits.priorityClassName, selection.priorityClassNames) &&
    matchesLabels(selection.labels ?? {}, traits.labels ?? {}) &&
    matchesLabels({ matchLabels: selection.annotations ?? {} }, traits.annotations ?? {})
  );
}

const isAmong = (name: string | undefined, names: readonly string[] | undefined): boolean =>
  names === undefined || (name !== undefined && names.includes(name));

/** An empty selector matches all. Upstream: `metav1.LabelSelectorAsSelector`. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => matchesExpression(expression, labelOf(labels, expression.key)))
  );
}

/** `Object.hasOwn` is needed because a label key can be `constructor`. */
const labelOf = (labels: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined;

function matchesExpression({ operator, values = [] }: LabelExpression, value: string | undefined): boolean {
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    default:
      return operator satisfies never;
  }
}

/** The `out-of-service` taint has none: such a node certainly does not run. */
function guardOn(trips: readonly Trip[], pod: DuePod, key: string): TaintGate | undefined {
  const trip = key === NODE_OUT_OF_SERVICE ? undefined : trips.find((each) => holdsBy(each, pod, key));
  if (!trip) return undefined;
  const { scope, zone, trippedAt } = trip;
  return { kind: 'guard', scope, ...defined({ zone }), trippedAt };
}

export const isTripOf = (known: Pick<Trip, 'scope' | 'zone' | 'trippedAt'>, trip: Trip): boolean =>
  trip.scope === known.scope && trip.zone === known.zone && trip.trippedAt === known.trippedAt;

/** Reports whether a trip holds pods that are due by a taint with this key. */
export function holdsBy(
  { scope, zone: tripped, trippedAt }: Pick<Trip, 'scope' | 'zone' | 'trippedAt'>,
  { zone, downSince }: Pick<DuePod, 'zone' | 'downSince'>,
  key: string,
): boolean {
  const down = DOWN_KEYS.includes(key);
  if (scope === 'customTaints') return !down;
  const before = downSince !== undefined && trippedAt - downSince >= DOWN_BEFORE_MS;
  return down && !before && (scope === 'cluster' || isInZone(tripped, zone));
}

/** A node whose zone is no longer known may have been in any zone. */
const isInZone = (tripped: string | undefined, zone: string | undefined): boolean =>
  zone === undefined || zone === tripped;

/** Reports whether something that ends at `until` is still in force at `now`. An absent `until` never ends. */
export const isOn = (until: EpochMs | undefined, now: EpochMs): boolean => until === undefined || now < until;
