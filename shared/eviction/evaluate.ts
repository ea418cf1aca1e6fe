import {
  DOWN_KEYS,
  type LiveTaint,
  NODE_OUT_OF_SERVICE,
  type Taint,
  type Toleration,
} from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { meansOf } from './budget.ts';
import type { EvictionGate } from './eviction-gate.ts';
import type { Deletion } from './facts.ts';
import { type DuePod, findGate, isOfTaints, leaseNoteOn } from './gate.ts';
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
  whyCancelled,
} from './records.ts';
import { areApart, earliestNow, heldText, latestNow, type SkewRange } from './skew.ts';

/** A pod as the API server shows it at fire time. */
export interface SeenPod {
  readonly uid: PodUid;
  readonly tolerations: readonly Toleration[];
  /** Absent: none. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly terminating: boolean;
  /** Marked by a taint manager before it was deleted. */
  readonly disrupted: boolean;
  /** Marked by the Eviction API, whoever asked for that. Absent: no. */
  readonly evicted?: true;
  /** Somebody else deleted it. */
  readonly deleted?: Deletion;
}

/** One look at a live node. */
export interface NodeObservation {
  readonly node: NodeName;
  /** When the look began: what it shows is at least as new. */
  readonly at: EpochMs;
  /** The node's taints, all effects; `undefined`: there is no such node. */
  readonly taints: readonly LiveTaint[] | undefined;
  /** Who wrote that list last, and when; see `LiveNode`. */
  readonly taintsStamp?: string | undefined;
  readonly zone?: string | undefined;
  /** What its Lease says; absent: it was not asked. */
  readonly life?: NodeLife | undefined;
  /** By how much the clocks of API servers are ahead of the one that shows `at`; absent: as none is. */
  readonly skews?: readonly SkewRange[] | undefined;
}

/** What is to be done with one due record. */
export type EvictionDecision =
  /**
   * `unlimited`: whatever the cluster's rate. `lease`: with a pod that goes because its node is called unreachable, and for no other
   * cause, why the node's Lease does not keep it; `unread`: it may keep it, and is to be asked first.
   */
  | {
      readonly kind: 'evict';
      readonly by: Method['kind'];
      readonly unlimited: boolean;
      readonly lease?: Lapse | 'unread';
    }
  /** It went already: by our eviction (`done`) or otherwise (`gone`), or when it would have been evicted. */
  | {
      readonly kind: 'end';
      readonly outcome: 'done' | 'gone' | 'would-have';
      readonly deleted?: Deletion | undefined;
    }
  | { readonly kind: 'cancel'; readonly because: CancelReason }
  /** Live state moves the deadline; the record as it is to be stored. */
  | { readonly kind: 'reschedule'; readonly record: EvictionRecord }
  /** The rules of the cluster forbid it for now; the record as it is to be stored. */
  | { readonly kind: 'hold'; readonly record: EvictionRecord & { readonly held: Held } }
  /**
   * Somebody wrote the node's taints since the relay last told of them: what it tells next may put the pod off, for
   * a taint that went and came back starts its countdown anew.
   */
  | { readonly kind: 'behind' }
  /** Its deadline has passed by our clock, and may lie ahead by an API server's. It has passed by both at `againAt`, by ours. */
  | { readonly kind: 'early'; readonly againAt: EpochMs }
  /** The clocks differ by so much that it is unknown whether the eviction is due. */
  | ClocksApart;

/** Evictions are held until the clocks agree; counts as if the cluster let nothing be done, but not as a failure. */
export interface ClocksApart {
  readonly kind: 'refused';
  readonly isHold: true;
  readonly error: string;
  readonly retryAfterSeconds: number;
}

/** First interval at which evictions held for differing clocks are reevaluated, in case no wake arrives. */
const APART_RETRY_SECONDS = 30;

/** So long after its deadline a pod waits for what the relay is about to tell; after that nobody tells. */
export const BEHIND_PATIENCE_MS = 60_000;

/**
 * Decides due records once more, on live state and by the rules of now, as they were scheduled: what live state
 * contradicts is corrected, not executed. Returns what decides each record with its pod, `undefined` where it is not on
 * the node. Upstream never looks again (semantics of the built-in controller: the timer that runs is the decision), which is
 * how it evicts pods of nodes that are no longer tainted.
 */
export function evaluate(
  node: NodeState | undefined,
  look: NodeObservation,
  rules: Rules,
): (record: EvictionRecord, pod: SeenPod | undefined) => EvictionDecision {
  // A node that is gone keeps its last taints, but for those it may have lost before.
  const { virtualKeys } = rules.policy;
  const last = node?.taints.filter(
    (taint) => !isDoubtful(node, taint) && (!taint.virtual || virtualKeys.includes(taint.key)),
  );
  const { skews = [] } = look;
  // Elapsed time is measured by one clock: the countdown of a taint that no delta reported starts by the clock it ends by.
  const earliest = earliestNow(look.at, skews);
  const apart = areApart(skews) ? heldText(skews) : undefined;
  // Nothing is evicted while clocks are apart, and what is due by our clock is to show why.
  const dueBefore = apart === undefined ? earliest : look.at;
  // Equivalent mutant (ArrayDeclaration): A text has no effect, so as a taint it evicts nobody.
  const taints = look.taints
    ? timeLiveTaints(node, look.taints, virtualKeys, earliest, latestNow(look.at, skews))
    : (last ?? []);
  const deletedAt = look.taints ? undefined : (node?.deletedAt ?? look.at);
  const behind = node !== undefined && look.taints !== undefined && look.taintsStamp !== node.taintsStamp;
  const deadlineOf = podDeadlines(taints, deletedAt, rules);
  const duenessOf = dueness(taints, deletedAt, look, rules);
  const { mode, method } = rules.policy;
  const observed = mode === 'observe';
  return (record, pod) => {
    if (!pod) return { kind: 'end', outcome: observed ? 'would-have' : 'gone' };
    if (pod.terminating) {
      const { disrupted, evicted, deleted } = pod;
      // Who asked the Eviction API is not to be seen: where it is our way, we did.
      const byUs = (disrupted && !deleted) || (method.kind === 'evict' && evicted === true);
      return { kind: 'end', outcome: observed ? 'would-have' : byUs ? 'done' : 'gone', deleted };
    }
    const deadline = deadlineOf(pod.tolerations, record.podSince);
    if (!deadline) return { kind: 'cancel', because: whyCancelled(record, taints) };
    if (deadline.at > dueBefore) {
      // The countdown of a taint that nobody told of begins anew with each look: who told of none by the second is waited for.
      const again = deadline.reasons.every(
        ({ since, taint }) => since === earliest && isReason(record, taint),
      );
      const at = again ? Math.max(deadline.at, earliest + BEHIND_PATIENCE_MS) : deadline.at;
      if (at <= look.at) return { kind: 'early', againAt: look.at + (at - earliest) };
      return { kind: 'reschedule', record: moved(record, { ...deadline, at }) };
    }
    // Live state may have moved the deadline since the pod's record was written.
    const overdueMs = dueBefore - Math.max(record.fireAt, deadline.at);
    if (behind && overdueMs < BEHIND_PATIENCE_MS) return { kind: 'behind' };
    const due = duenessOf(record, pod, dueBefore);
    const { braked } = due;
    if (!braked) {
      // A taint that has just fallen due may be put off, however long another one has been due.
      const sure = behind ? duenessOf(record, pod, dueBefore - BEHIND_PATIENCE_MS) : due;
      const { dueBy, braked: bySure, lease } = sure;
      if (bySure) return { kind: 'behind' };
      if (apart !== undefined)
        return { kind: 'refused', isHold: true, error: apart, retryAfterSeconds: APART_RETRY_SECONDS };
      const leaving = { dueBy, nodeGone: look.taints === undefined, blocked: record.blocked };
      const unlimited = dueBy.includes(NODE_OUT_OF_SERVICE);
      const by = meansOf(method, leaving, look.at);
      return { kind: 'evict', by, unlimited, ...(lease === undefined ? {} : { lease }) };
    }
    const since = record.held?.by.kind === braked.by.kind ? record.held.since : look.at;
    // Its turn is over by the time that nothing holds it any more.
    const { turnAt: _turnAt, ...rest } = record;
    return { kind: 'hold', record: heldRecord(rest, { ...braked, since }) };
  };
}

const isReason = ({ reasons }: EvictionRecord, { key, effect }: Taint): boolean =>
  reasons.some(({ taint }) => taint.key === key && taint.effect === effect);

/** A record with another deadline: what failed before, or was held or blocked, or had its turn, was another eviction. */
function moved(
  {
    failure: _failure,
    held: _held,
    blocked: _blocked,
    notBefore: _notBefore,
    turnAt: _turnAt,
    ...record
  }: EvictionRecord,
  { at: fireAt, reasons }: PodDeadline,
): EvictionRecord {
  return { ...record, fireAt, reasons };
}

/** Why a pod is due, and whether it may go. */
interface Dueness {
  /** Keys of the taints each of which alone makes it go by then. */
  readonly dueBy: readonly string[];
  /** What forbids that it is evicted, and when it is to be looked at again by itself; absent: nothing. */
  readonly braked?: { readonly by: EvictionGate; readonly until?: EpochMs };
  /** With what nothing forbids; see {@link EvictionDecision}. */
  readonly lease?: Lapse | 'unread';
}

/**
 * Looks through the taints of a node, one by one. What forbids everything, or much, has no moment at which a pod is to be looked
 * at again by itself: all of it would go at once then, where it is to go in turn. `dueAt`: by when a taint fell due to count.
 */
function dueness(
  taints: readonly TimedTaint[],
  deletedAt: EpochMs | undefined,
  { node, zone, at, taints: live, life }: NodeObservation,
  rules: Rules,
): (record: EvictionRecord, pod: SeenPod, dueAt: EpochMs) => Dueness {
  const single = taints.map((taint) => ({
    key: taint.key,
    deadlineOf: podDeadlines([taint], deletedAt, rules),
  }));
  const downSince = earliest(
    // Equivalent mutant (ArrayDeclaration): A text has no key, so it is no taint of a node that is down.
    (live ?? []).filter(({ key }) => DOWN_KEYS.includes(key)).map(({ timeAdded }) => timeAdded),
  );
  return (record, pod, dueAt) => {
    const deadlines = single.flatMap(({ key, deadlineOf }) => {
      const deadline = deadlineOf(pod.tolerations, record.podSince);
      // Equivalent mutant (ArrayDeclaration): A text has no moment, so it is neither due nor due later.
      return deadline ? [{ key, at: deadline.at }] : [];
    });
    const dueBy = deadlines.filter((deadline) => deadline.at <= dueAt).map(({ key }) => key);
    const due: DuePod = {
      ...{ node, zone, downSince, dueBy, record },
      labels: pod.labels ?? {},
      // Nobody renews the Lease of a node that is gone, and nobody asks it.
      life: live && (life ?? 'unread'),
    };
    const by = findGate(rules, due, at);
    if (!by) {
      const lease = leaseNoteOn(rules, due, at);
      return { dueBy, ...(lease === undefined ? {} : { lease }) };
    }
    // Another taint that falls due may be one that nothing forbids. Our clock is ahead by then as it is now.
    const later = deadlines
      .filter((deadline) => deadline.at > dueAt)
      .map((deadline) => deadline.at + (at - dueAt));
    const until = earliest([
      ...(isOfTaints(by) ? later : []),
      by.kind === 'hold' || isOfTaints(by) ? by.until : undefined,
    ]);
    return { dueBy, braked: { by, ...(until === undefined ? {} : { until }) } };
  };
}

const earliest = (moments: readonly (EpochMs | undefined)[]): EpochMs | undefined =>
  moments.reduce(
    // Equivalent mutant (EqualityOperator): Of two moments that are the same either is the earlier.
    (least, moment) => (moment === undefined || (least ?? moment + 1) <= moment ? least : moment),
    undefined,
  );
