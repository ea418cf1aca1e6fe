import { defined } from '#shared/defined.ts';
import { type LiveTaint, NODE_OUT_OF_SERVICE, type Taint, type Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { meansOf } from './budget.ts';
import type { EvictionGate } from './eviction-gate.ts';
import { type Deletion, earliest, type PodTraits } from './facts.ts';
import { type DuePod, downSince, findGate, isObserved, isOfTaints, leaseNoteOn, storedGate } from './gate.ts';
import type { NodeName, PodUid } from './identity.ts';
import type { Lapse, NodeLife } from './node-life.ts';
import { isDoubtful, timeLiveTaints } from './node-state.ts';
import { type PodDeadline, podDeadlines } from './pod-deadline.ts';
import type { Method, Rules } from './policy.ts';
import {
  type CancelReason,
  type EvictionRecord,
  type Held,
  heldRecord,
  type NodeState,
  type TimedTaint,
  whyCanceled,
} from './records.ts';
import { areApart, earliestNow, heldText, latestNow, type SkewRange } from './skew.ts';

/** A pod as the API server shows it when its eviction is due. */
export interface SeenPod extends PodTraits {
  readonly uid: PodUid;
  readonly tolerations: readonly Toleration[];
  readonly terminating: boolean;
  /** A taint manager marked the pod before deleting it. */
  readonly disrupted: boolean;
  /** The Eviction API marked the pod, at the request of any caller. Absent: no. */
  readonly evicted?: true;
  readonly deleted?: Deletion;
}

export interface NodeObservation {
  readonly node: NodeName;
  /** When the observation began; its facts are at least as new. */
  readonly at: EpochMs;
  /** The node's taints, all effects; `undefined`: there is no such node. */
  readonly taints: readonly LiveTaint[] | undefined;
  /** Last writer of these taints, and the time of the write; see `LiveNode`. */
  readonly taintsStamp?: string | undefined;
  readonly zone?: string | undefined;
  /** State of the node's Lease; absent: the Lease was not read. */
  readonly life?: NodeLife | undefined;
  /** By how much the clocks of API servers are ahead of the clock that shows `at`; absent: none is ahead. */
  readonly skews?: readonly SkewRange[] | undefined;
  /** Namespaces that are known to be being deleted; absent: none. */
  readonly terminatingNamespaces?: ReadonlySet<string>;
}

/**
 * `unlimited`: regardless of the cluster's rate. `lease`: why the Lease does not keep a pod that only `unreachable`
 * evicts. `unread`: the Lease may keep the pod, and must be read first.
 */
export interface Evict {
  readonly kind: 'evict';
  readonly by: Method['kind'];
  readonly unlimited: boolean;
  readonly lease?: Lapse | 'unread';
}

export type EvictionDecision =
  | Evict
  /**
   * The pod is gone: by our eviction (`done`), otherwise (`gone`), or when it would have been evicted (`would-have`).
   * `by`: the gate that would have held it, if another actor deleted it.
   */
  | {
      readonly kind: 'end';
      readonly outcome: 'evicted' | 'already-gone' | 'would-evict';
      readonly by?: EvictionGate;
      readonly deleted?: Deletion | undefined;
    }
  | { readonly kind: 'cancel'; readonly because: CancelReason }
  /** Live state moves the deadline. `record`: as it is to be stored. */
  | { readonly kind: 'reschedule'; readonly record: EvictionRecord }
  /** A gate holds the pod for now. `would`: the eviction, if only observe mode prevents it. */
  | {
      readonly kind: 'hold';
      readonly record: EvictionRecord & { readonly held: Held };
      readonly would?: Evict;
    }
  /**
   * The taints were written after the relay's last report. The next one may postpone the eviction: a taint that was
   * removed and added again restarts its countdown.
   */
  | { readonly kind: 'behind' }
  /** The deadline has passed by our clock, but perhaps not by an API server's: by both at `againAt`, by our clock. */
  | { readonly kind: 'early'; readonly againAt: EpochMs }
  /** The clocks differ so much that it is unknown whether the eviction is due. */
  | ClocksApart;

/** Evictions are held until the clocks agree: as if the cluster rejected all requests, but not as a failure. */
export interface ClocksApart {
  readonly kind: 'refused';
  readonly isHold: true;
  readonly error: string;
  readonly retryAfterSeconds: number;
}

/** First interval at which evictions held for differing clocks are reevaluated, in case no wake arrives. */
const APART_RETRY_SECONDS = 30;

/** How long after its deadline a pod waits for the relay's next report. After this time, no report is expected. */
export const BEHIND_PATIENCE_MS = 60_000;

/**
 * Decides due records again, on live state and by the current rules; an eviction that these contradict is corrected.
 * The function takes a record and its pod, `undefined` if not on the node. The built-in controller never checks again:
 * its timer is the decision, so it evicts pods of nodes that are no longer tainted.
 */
export function evaluate(
  node: NodeState | undefined,
  observation: NodeObservation,
  rules: Rules,
): (record: EvictionRecord, pod: SeenPod | undefined) => EvictionDecision {
  // A deleted node keeps its last taints, except taints that may have been removed earlier.
  const { treatAsNoExecute } = rules.policy;
  const last = node?.taints.filter(
    (taint) => !isDoubtful(node, taint) && (!taint.virtual || treatAsNoExecute.includes(taint.key)),
  );
  const { skews = [] } = observation;
  // Elapsed time is measured by one clock: an unreported taint's countdown starts and ends by the same.
  const earliest = earliestNow(observation.at, skews);
  const apart = areApart(skews) ? heldText(skews) : undefined;
  // No pod is evicted while clocks are apart. An eviction that is due by our clock must record why.
  const dueBefore = apart === undefined ? earliest : observation.at;
  const taints = observation.taints
    ? timeLiveTaints(node, observation.taints, treatAsNoExecute, earliest, latestNow(observation.at, skews))
    : (last ?? []);
  const deletedAt = observation.taints ? undefined : (node?.deletedAt ?? observation.at);
  const behind =
    node !== undefined && observation.taints !== undefined && observation.taintsStamp !== node.taintsStamp;
  const deadlineOf = podDeadlines(taints, deletedAt, rules);
  const duenessOf = dueness(taints, deletedAt, observation, rules);
  const { method } = rules.policy;
  const observed = isObserved(rules);
  const ended = (record: EvictionRecord, pod?: SeenPod): EvictionDecision => {
    const { disrupted, evicted, deleted } = pod ?? {};
    const how = { kind: 'end' as const, ...defined({ deleted }) };
    // The pod does not show the caller of the Eviction API. If policy uses it, we assume that we did.
    const byUs = (disrupted && !deleted) || (method.kind === 'evict' && evicted === true);
    if (byUs && !observed) return { ...how, outcome: 'evicted' };
    const seen = { ...node, node: observation.node, zone: observation.zone, ...defined({ traits: pod }) };
    const gate = storedGate(rules, seen, record, observation.at);
    if (gate?.kind === 'observe') return { ...how, outcome: 'would-evict' };
    return { ...how, outcome: 'already-gone', ...(gate && deleted ? { by: gate } : {}) };
  };
  return (record, pod) => {
    if (!pod || pod.terminating) return ended(record, pod);
    const deadline = deadlineOf(pod.tolerations, record.podSince);
    if (!deadline) return { kind: 'cancel', because: whyCanceled(record, taints) };
    if (deadline.at > dueBefore) {
      // An unreported taint's countdown restarts with each observation. From the second on, the pod waits for the
      // report.
      const again = deadline.causes.every(
        ({ since, taint }) => since === earliest && isReason(record, taint),
      );
      const at = again ? Math.max(deadline.at, earliest + BEHIND_PATIENCE_MS) : deadline.at;
      if (at <= observation.at) return { kind: 'early', againAt: observation.at + (at - earliest) };
      return { kind: 'reschedule', record: moved(record, { ...deadline, at }) };
    }
    // Live state may have moved the deadline since the pod's record was written.
    const overdueMs = dueBefore - Math.max(record.dueAt, deadline.at);
    if (behind && overdueMs < BEHIND_PATIENCE_MS) return { kind: 'behind' };
    const due = duenessOf(record, pod, dueBefore);
    const { duePod } = due;
    let would: Evict | undefined;
    if (!duePod || duePod.by.kind === 'observe') {
      // A taint that has just become due may still be postponed, however long another taint has been due.
      const sure = behind ? duenessOf(record, pod, dueBefore - BEHIND_PATIENCE_MS) : due;
      const { dueBy, duePod: bySure, lease } = sure;
      if (bySure && bySure.by.kind !== 'observe') return { kind: 'behind' };
      if (apart !== undefined)
        return { kind: 'refused', isHold: true, error: apart, retryAfterSeconds: APART_RETRY_SECONDS };
      const leaving = {
        dueBy,
        nodeGone: observation.taints === undefined,
        blocked: record.blocked,
        namespaceTerminating: observation.terminatingNamespaces?.has(record.namespace) === true,
      };
      const unlimited = dueBy.includes(NODE_OUT_OF_SERVICE);
      const means = meansOf(method, leaving, observation.at);
      would = { kind: 'evict', by: means, unlimited, ...defined({ lease }) };
      if (!duePod) return would;
    }
    const since = record.held?.by.kind === duePod.by.kind ? record.held.since : observation.at;
    // The pod's turn is over by the time the gate opens.
    const { turnAt: _turnAt, ...rest } = record;
    return { kind: 'hold', record: heldRecord(rest, { ...duePod, since }), ...defined({ would }) };
  };
}

const isReason = ({ causes }: EvictionRecord, { key, effect }: Taint): boolean =>
  causes.some(({ taint }) => taint.key === key && taint.effect === effect);

/** Drops failures, holds, blocks, and turns: they belong to another eviction. */
function moved(
  {
    failure: _failure,
    held: _held,
    blocked: _blocked,
    notBefore: _notBefore,
    turnAt: _turnAt,
    ...record
  }: EvictionRecord,
  { at: dueAt, causes }: PodDeadline,
): EvictionRecord {
  return { ...record, dueAt, causes };
}

interface Dueness {
  /** Keys of the taints that are due by then. Each of them alone evicts the pod. */
  readonly dueBy: readonly string[];
  /** The gate that holds the pod, and the time of the next check; absent: none. */
  readonly duePod?: { readonly by: EvictionGate; readonly until?: EpochMs };
  /** Set without a gate, or in observe mode; see {@link Evict}. */
  readonly lease?: Lapse | 'unread';
}

/**
 * A gate that holds many pods has no time for another check: all would then be evicted together instead of in turn.
 * `latest`: time by which a taint must be due to count.
 */
function dueness(
  taints: readonly TimedTaint[],
  deletedAt: EpochMs | undefined,
  { node, zone, at, taints: live, life }: NodeObservation,
  rules: Rules,
): (record: EvictionRecord, pod: SeenPod, latest: EpochMs) => Dueness {
  const single = taints.map((taint) => ({
    key: taint.key,
    deadlineOf: podDeadlines([taint], deletedAt, rules),
  }));
  const since = downSince(live);
  return (record, pod, latest) => {
    const deadlines = single.flatMap(({ key, deadlineOf }) => {
      const deadline = deadlineOf(pod.tolerations, record.podSince);
      return deadline ? [{ key, at: deadline.at }] : [];
    });
    const dueBy = deadlines.filter((deadline) => deadline.at <= latest).map(({ key }) => key);
    const due: DuePod = {
      node,
      zone,
      downSince: since,
      dueBy,
      record,
      traits: pod,
      // Nobody renews or reads the Lease of a deleted node.
      life: live && (life ?? 'unread'),
    };
    const gate = findGate(rules, due, at);
    const note = !gate || gate.kind === 'observe' ? leaseNoteOn(rules, due, at) : undefined;
    const lease = note === undefined ? {} : { lease: note };
    if (!gate) return { dueBy, ...lease };
    // A taint that becomes due later may have no gate. Our clock is assumed to be as far ahead then as it is now.
    const later = deadlines
      .filter((deadline) => deadline.at > latest)
      .map((deadline) => deadline.at + (at - latest));
    const until = earliest([
      ...(isOfTaints(gate) ? later : []),
      gate.kind === 'hold' || isOfTaints(gate) ? gate.until : undefined,
    ]);
    return { dueBy, duePod: { by: gate, ...defined({ until }) }, ...lease };
  };
}
