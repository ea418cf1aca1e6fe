import { DOWN_KEYS, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterGate, EvictionGate, OfTaints } from './eviction-gate.ts';
import type { PodFacts } from './facts.ts';
import type { NodeName } from './identity.ts';
import { isOn, modeOf } from './in-force.ts';
import type { LabelExpression, LabelSelector } from './label-selector.ts';
import { matchesPattern } from './namespace-pattern.ts';
import type { Lapse, NodeLife } from './node-life.ts';
import type { Hold, HoldTarget, Rules, Selection, Trip } from './policy.ts';
import type { EvictionRecord } from './records.ts';

type Owner = NonNullable<PodFacts['owner']>;

/** A node that was down for so long when the guard tripped is none of those it tripped for. */
const DOWN_BEFORE_MS = 15 * 60_000;

/** A pod that is due, and what of it and its node policy asks for. */
export interface DuePod {
  readonly node: NodeName;
  /** Absent where the node is gone or in none. */
  readonly zone?: string | undefined;
  /** When the node controller found the node down, where it did. */
  readonly downSince?: EpochMs | undefined;
  /** Keys of the taints each of which alone makes the pod go by now; at least one. */
  readonly dueBy: readonly string[];
  readonly record: Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'owner' | 'held'>;
  readonly labels: Readonly<Record<string, string>>;
  /** What the node's Lease says; `unread`: it was not asked yet. Absent: the node is gone, or its Lease does not count. */
  readonly life?: NodeLife | 'unread' | undefined;
}

/**
 * What forbids that a pod that is due is evicted at `now`; `undefined`: nothing. What policy, guard and the node's Lease say of
 * single taints counts when it is true of each that makes the pod go.
 */
export function findGate(rules: Rules, pod: DuePod, now: EpochMs): EvictionGate | undefined {
  const gate = clusterGate(rules, now) ?? holdOn(rules.holds, pod, now);
  if (gate) return gate;
  const { policyRevision: revision, guardRevision } = rules;
  const said = pod.dueBy.map((key) => saidOf(rules, pod, key, now) ?? lifeOn(rules, pod, key, now));
  const [first] = said;
  if (!first || said.includes(undefined)) return limitOn(rules, pod, now);
  // Equivalent mutant (OptionalChaining): Where something is not said of one taint, the line above has
  // returned; the type checker does not know.
  const untils = said.map((each) => each?.until).filter((until) => until !== undefined);
  const until = untils.length > 0 ? { until: Math.min(...untils) } : {};
  return { ...first, revision, guardRevision, ...until };
}

/**
 * What the node's Lease has to say to the eviction of a pod that nothing forbids: why it forbids nothing; `unread`: it is to be asked
 * first. `undefined`: it is of no matter, because another taint makes the pod go, or policy does not ask.
 */
export function leaseNoteOn(rules: Rules, pod: DuePod, now: EpochMs): Lapse | 'unread' | undefined {
  const { life, dueBy } = pod;
  if (life === undefined || !asksLease(rules) || !dueBy.includes(NODE_UNREACHABLE)) return undefined;
  const isDecisive = dueBy.every((key) => key === NODE_UNREACHABLE || saidOf(rules, pod, key, now));
  if (!isDecisive) return undefined;
  // One that was alive, and has not been asked since its Lease expired, may have renewed it.
  return life === 'unread' || life.kind === 'alive' ? 'unread' : life.because;
}

/** Whether policy wants the Lease of a node to have expired before pods go because the node is called unreachable. */
export const asksLease = ({ policy }: Pick<Rules, 'policy'>): boolean => policy.requireExpiredLease !== false;

/** What forbids every eviction in a cluster at `now`; one that is observed has nothing to stop. */
export function clusterGate({ policy, stops }: Rules, now: EpochMs): ClusterGate | undefined {
  if (policy.mode === 'observe') return { kind: 'observe' };
  const stop = stops.find(({ until }) => isOn(until, now));
  if (stop) return { kind: 'stopped', scope: stop.scope, ...untilOf(stop) };
  if (modeOf(policy, now) !== 'paused') return undefined;
  const { pausedUntil: until } = policy;
  return { kind: 'paused', ...(until === undefined ? {} : { until }) };
}

/** Whether what held a pod may still hold it: else it is to be judged anew. */
export function mayStillHold(gate: EvictionGate, rules: Rules, now: EpochMs): boolean {
  switch (gate.kind) {
    case 'observe':
    case 'paused':
    case 'stopped':
      return clusterGate(rules, now)?.kind === gate.kind;
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
    default:
      return gate satisfies never;
  }
}

/** Whether what holds a pod depends on the pod: on its labels, on what runs it, or on which taints make it go. */
export const isOfPod = (gate: EvictionGate): boolean => gate.kind === 'hold' || isOfTaints(gate);

/** Whether what holds a pod depends on which of its taints make it go. */
export const isOfTaints = (gate: EvictionGate): gate is Extract<EvictionGate, OfTaints> =>
  ['excluded', 'guard', 'node-alive', 'workload-limit'].includes(gate.kind);

/** The next moment after `now` at which time alone changes what the rules forbid; `undefined`: none. */
export function nextExpiry({ policy, stops, holds }: Rules, now: EpochMs): EpochMs | undefined {
  const moments = [
    policy.mode === 'paused' ? policy.pausedUntil : undefined,
    ...[...stops, ...holds, ...policy.exclude, ...policy.only].map(({ until }) => until),
    // Equivalent mutant (ConditionalExpression): `undefined` is not after any moment: the check is for the type
    // checker.
  ].filter((moment) => moment !== undefined && moment > now);
  return moments.length === 0 ? undefined : Math.min(...moments.map(Number));
}

const untilOf = ({ until }: { readonly until?: EpochMs }) => (until === undefined ? {} : { until });

function holdOn(holds: readonly Hold[], pod: DuePod, now: EpochMs): EvictionGate | undefined {
  const hold = holds.find((each) => isOn(each.until, now) && isTarget(each.target, pod));
  return hold && { kind: 'hold', id: hold.id, ...untilOf(hold) };
}

/** Whether a hold on `target` is one on this pod. */
export function isTarget(target: HoldTarget, { node, record }: Pick<DuePod, 'node' | 'record'>): boolean {
  switch (target.kind) {
    case 'node':
      return target.node === node;
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

/** What runs pods for these workloads, under a name of the workload's and what follows a dash, without another one. */
const INTERMEDIATE_OWNERS: Readonly<Record<string, string>> = { Deployment: 'ReplicaSet', CronJob: 'Job' };

/** Whether a pod's owner is the workload, or runs its pods. Upstream: `getReplicaSetName`, `getJobName` of their controllers. */
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

/** What is said of one taint. */
type Said =
  | { readonly kind: 'excluded'; readonly until?: EpochMs }
  | {
      readonly kind: 'guard';
      readonly scope: Trip['scope'];
      readonly trippedAt: EpochMs;
      readonly until?: never;
    };

/** What policy and guard say of one taint. */
const saidOf = (rules: Rules, pod: DuePod, key: string, now: EpochMs): Said | undefined =>
  exclusion(rules, pod, key, now) ?? guardOn(rules.trips, pod, key);

/** What the node's Lease says of one taint. */
function lifeOn(rules: Rules, { life }: DuePod, key: string, now: EpochMs) {
  if (key !== NODE_UNREACHABLE || life === undefined || life === 'unread' || !asksLease(rules))
    return undefined;
  if (life.kind !== 'alive' || life.until <= now) return undefined;
  return { ...life, kind: 'node-alive' as const };
}

/** What was said to a pod that asked for a permit lately. A node that is out of service does not run for certain. */
function limitOn(rules: Rules, { dueBy, record: { held } }: DuePod, now: EpochMs): EvictionGate | undefined {
  const by = held?.by;
  if (by?.kind !== 'workload-limit' || dueBy.includes(NODE_OUT_OF_SERVICE)) return undefined;
  return mayStillHold(by, rules, now) ? by : undefined;
}

function exclusion({ policy }: Rules, pod: DuePod, key: string, now: EpochMs): Said | undefined {
  const { exclude, only } = policy;
  const excluded = exclude.find((each) => selects(each, pod, key, now));
  if (excluded) return { kind: 'excluded', ...untilOf(excluded) };
  const named = only.length === 0 || only.some((each) => selects(each, pod, key, now));
  return named ? undefined : { kind: 'excluded' };
}

function selects(
  { namespaces, namespacePatterns, labels, taints, until }: Selection,
  pod: DuePod,
  key: string,
  now: EpochMs,
): boolean {
  return (
    isOn(until, now) &&
    ((namespaces === undefined && namespacePatterns === undefined) ||
      namespaces?.includes(pod.record.namespace) === true ||
      namespacePatterns?.some((pattern) => matchesPattern(pattern, pod.record.namespace)) === true) &&
    (taints?.includes(key) ?? true) &&
    (labels === undefined || matchesLabels(labels, pod.labels))
  );
}

/** Upstream: `metav1.LabelSelectorAsSelector`; an empty selector selects everything. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => matchesExpression(expression, labelOf(labels, expression.key)))
  );
}

/** `constructor` is the key of a label as good as any. */
const labelOf = (labels: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined;

// Equivalent mutant (ArrayDeclaration): Without values there are only `Exists` and `DoesNotExist`, which do
// not look at them: policies with another are refused.
function matchesExpression({ operator, values = [] }: LabelExpression, value: string | undefined): boolean {
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      // Equivalent mutant (ConditionalExpression): `undefined` is none of the values: the check is for the
      // type checker.
      return value !== undefined && values.includes(value);
    case 'NotIn':
      // Equivalent mutant (ConditionalExpression): `undefined` is none of the values: the check is for the
      // type checker.
      return value === undefined || !values.includes(value);
    default:
      return operator satisfies never;
  }
}

/** `out-of-service` says that a node does not run for certain. */
function guardOn(trips: readonly Trip[], pod: DuePod, key: string): Said | undefined {
  const trip = key === NODE_OUT_OF_SERVICE ? undefined : trips.find((each) => holdsBy(each, pod, key));
  return trip && { kind: 'guard', scope: trip.scope, trippedAt: trip.trippedAt };
}

/** A node whose zone nobody knows any more may have been in any. */
function holdsBy(
  { scope, zone: tripped, trippedAt }: Trip,
  { zone, downSince }: DuePod,
  key: string,
): boolean {
  const down = DOWN_KEYS.includes(key);
  if (scope === 'people') return !down;
  // Equivalent mutant (ConditionalExpression): A moment less `undefined` is no number, and no number is not
  // as large as any: the check is for the type checker.
  const before = downSince !== undefined && trippedAt - downSince >= DOWN_BEFORE_MS;
  return down && !before && (scope === 'cluster' || zone === undefined || zone === tripped);
}
