import type { EpochMs } from '#shared/time/epoch-ms.ts';
import {
  begunBy,
  compareVersions,
  DELTA_MAX_AGE_MS,
  type DeletedPod,
  type Deletion,
  type Delta,
  newer,
  type PodFacts,
  type Version,
} from './facts.ts';
import { isOfPod, isOfTaints, mayStillHold } from './gate.ts';
import { mergeNodeState, raiseStarts, sameFacts, tellsOf } from './node-state.ts';
import { dueAt, type PodDeadline, podDeadlines } from './pod-deadline.ts';
import type { Rules } from './policy.ts';
import {
  drainsOnRelease,
  type EndedPod,
  type EvictionRecord,
  ending,
  type FinalRecord,
  isAnnounced,
  isTainted,
  isTombstone,
  type NodeState,
  type Partition,
  whyCancelled,
} from './records.ts';
import { momentOf } from './retry.ts';

/** When and under whom a delta is heard. */
export interface Moment {
  readonly now: EpochMs;
  /** Of the cluster's lease; absent: nobody has ever taken it. */
  readonly leaseEpoch?: number | undefined;
}

/**
 * What becomes of one pod.
 * - `schedule`: it gets a deadline; `reschedule`: its deadline moves; `confirm`: its deadline stands, which is stored, so
 *   that older deltas are known as such; what is held for its taints is judged anew.
 * - `free`: it was held, and nothing holds it any more; it goes in its turn.
 * - `rearm`: nothing changes, but its timer may be lost.
 * - each of these wants a timer for when the record falls due, its turn comes, or what holds it ends.
 * - `cancel`: nothing calls for its eviction any more, or it is gone.
 * - `evicted-elsewhere`: another taint manager evicted it before it was ever scheduled, or when it was so no longer.
 * - `cancelled-before`: this very delta cancelled it on an earlier delivery, and its Event may not have been posted.
 */
export type PodDecision =
  | {
      readonly kind: 'schedule' | 'reschedule' | 'confirm' | 'free' | 'rearm';
      readonly record: EvictionRecord;
    }
  | { readonly kind: 'cancel'; readonly ending: FinalRecord }
  | { readonly kind: 'evicted-elsewhere'; readonly ending: FinalRecord }
  | { readonly kind: 'cancelled-before'; readonly ending: EndedPod };

/** What a delta asks for, as data. */
export interface Plan {
  /** The NODE item's new content; absent = nothing to store. */
  readonly node?: NodeState;
  /** Whether that says something new of the node, and not only of the delta. */
  readonly nodeChanged: boolean;
  readonly decisions: readonly PodDecision[];
  /** Whether anything on the node is still to be watched over. */
  readonly live: boolean;
}

/**
 * Decides what a delta changes in one node's partition. Pure and idempotent: the same delta again changes
 * nothing and arms the same timers. Old or reordered deltas never override newer facts; those of a relay that has
 * lost its lease, and those older than two resyncs, decide nothing at all. The partition must hold the records the
 * delta speaks of (all, for a node delta). `rules`: of the cluster, as they are now; but which taints are virtual the delta
 * says, for its relay tells anew when that changes.
 */
export function plan(partition: Partition, delta: Delta, rules: Rules, heard: Moment): Plan {
  // A delta can't be received before it was observed: a clock that shows this is behind, and would start countdowns too early.
  const moment = { ...heard, now: Math.max(heard.now, delta.observedAt) };
  const known = partition.node;
  const counts = isCurrent(delta, moment);
  const node = counts
    ? mergeNodeState(known, delta, moment.now)
    : known && raiseStarts(known, delta, moment.now);
  const decisions =
    counts && node
      ? decidePods(partition, node, delta, { rules, now: moment.now })
      : remindOf(partition, delta);
  const nodeChanged = node !== undefined && !sameFacts(known, node);
  const written = nodeChanged || node?.podsVersion !== known?.podsVersion || node?.retry !== known?.retry;
  return {
    ...(node && written ? { node } : {}),
    nodeChanged,
    decisions,
    live: isTainted(node) || leavesScheduled(partition, decisions),
  };
}

/** Queues may bring an older word on a node after a newer one on its pods, which no word on the node names yet. */
function leavesScheduled({ scheduled }: Partition, decisions: readonly PodDecision[]): boolean {
  const left = new Set(scheduled.keys());
  for (const decision of decisions) if ('ending' in decision) left.delete(decision.ending.uid);
  return left.size > 0;
}

/** Whether a delta may decide: its relay holds the lease, as far as is known, and two resyncs have not passed since. */
function isCurrent({ version, observedAt }: Delta, { now, leaseEpoch = 0 }: Moment): boolean {
  return version.epoch >= leaseEpoch && now - observedAt <= DELTA_MAX_AGE_MS;
}

/** A delta that may not decide still brings its node's timers back, and a pod that was seen to go is gone. */
function remindOf({ scheduled }: Partition, delta: Delta): readonly PodDecision[] {
  const records = delta.kind === 'node' ? [...scheduled.values()] : [scheduled.get(uidOf(delta))];
  return records
    .filter((record) => record !== undefined)
    .map((record) =>
      delta.kind === 'pod-gone'
        ? endAbsent(delta, record, 'gone', delta.deleted?.deleted)
        : { kind: 'rearm', record },
    );
}

const uidOf = (delta: Exclude<Delta, { kind: 'node' }>) => (delta.kind === 'pod' ? delta.pod.uid : delta.uid);

/** By what pods are decided beside their node and the delta. */
interface Given {
  readonly rules: Rules;
  readonly now: EpochMs;
}

function decidePods(
  partition: Partition,
  node: NodeState,
  delta: Delta,
  given: Given,
): readonly PodDecision[] {
  const { scheduled, ended } = partition;
  const decide = podDecider(partition, node, delta, given);
  const decideDeleted = deletionDecider(partition, node, delta, given);
  const decisions: (PodDecision | undefined)[] = [];
  switch (delta.kind) {
    case 'node': {
      const untainted = delta.taints.length === 0 && delta.deletedAt === undefined;
      // Equivalent mutant (ArrayDeclaration): No pod has that UID.
      const present = new Set([...delta.pods.map((pod) => pod.uid), ...(delta.others ?? [])]);
      const deleted = new Set(delta.deleted?.map(({ uid }) => uid));
      for (const record of scheduled.values()) {
        if (deleted.has(record.uid)) continue;
        // Equivalent mutant (EqualityOperator): A record of the delta's own version was written by that
        // delta, which names its pod.
        const missing = !present.has(record.uid) && compareVersions(delta.version, record.version) >= 0;
        // A node without taints is told without its pods.
        if (missing)
          decisions.push(untainted ? cancel(delta, record, node) : endAbsent(delta, record, 'cancelled'));
      }
      for (const each of ended.values()) {
        if (present.has(each.uid) || scheduled.has(each.uid) || deleted.has(each.uid)) continue;
        decisions.push(untainted && isBy(delta, each) ? repeat(each) : repeatAbsent(delta, each));
      }
      for (const pod of delta.pods) decisions.push(decide(pod));
      for (const pod of delta.deleted ?? []) decisions.push(decideDeleted(pod));
      break;
    }
    case 'pod':
      decisions.push(decide(delta.pod));
      break;
    case 'pod-gone': {
      // A UID never returns, so this holds whatever was heard before or after.
      const [record, before] = [scheduled.get(delta.uid), ended.get(delta.uid)];
      if (delta.deleted) decisions.push(decideDeleted(delta.deleted));
      else if (record) decisions.push(endAbsent(delta, record, 'gone'));
      else if (before) decisions.push(repeatAbsent(delta, before));
      break;
    }
    default:
      return delta satisfies never;
  }
  return decisions.filter((decision) => decision !== undefined);
}

/**
 * Decides the pods that a delta says are on the node, each by its record and by the end of an earlier one.
 * `undefined`: there is nothing to do.
 */
function podDecider(
  { node: known, scheduled, ended }: Partition,
  node: NodeState,
  delta: Delta,
  { rules, now }: Given,
): (pod: PodFacts) => PodDecision | undefined {
  const deadlineOf = podDeadlines(node.taints, node.deletedAt, rules);
  const tells = tellsOf(delta, node);
  return (pod) => {
    const record = scheduled.get(pod.uid);
    const end = ended.get(pod.uid);
    if (end && isTombstone(end)) return undefined;
    const last = record ?? end;
    const isFree = record?.held && delta.kind === 'node' && !mayStillHold(record.held.by, rules, now);
    if (last && isBy(delta, last) && !isFree) return record ? { kind: 'rearm', record } : repeat(end);
    // A node delta that tells of this pod under the taints of now has been heard, or is still to come.
    if (!tells) return undefined;
    const heard = newer(last?.version, known?.podsVersion);
    const age = heard ? compareVersions(delta.version, heard) : 1;
    if (age < 0) return undefined;
    // Equivalent mutant (ConditionalExpression): A pod delta has its version for itself: what was heard under
    // it is the pod's own record, which the line on `isBy` has met.
    if (age === 0 && delta.kind === 'node' && !isFree) return leaveAsItIs(node, delta, record);
    // It may have been stored by a release that took any.
    const podSince = begunBy(last?.podSince ?? pod.podSince, now);
    const deadline = deadlineOf(pod.tolerations, podSince);
    if (!deadline) return record && cancel(delta, record, node);
    const fireAt = dueAt(deadline.at, delta.observedAt, record);
    if (record?.gaveUpAt !== undefined && record.fireAt === fireAt) return undefined;
    const next = recordOf(pod, { ...deadline, at: fireAt }, delta, { podSince, before: record });
    if (!record) return { kind: 'schedule', record: next };
    if (record.fireAt !== fireAt) return { kind: 'reschedule', record: next };
    if (isFree) return { kind: 'free', record: freed(record, pod, rules, now) };
    const { held } = record;
    // Another taint that makes it go, or a toleration or label that it lacks by now, may be one that nothing forbids.
    const isDoubtful =
      held && (delta.kind === 'pod' ? isOfPod(held.by) : isOfTaints(held.by) && !sameFacts(known, node));
    if (delta.kind === 'node' && !isDoubtful) return leaveAsItIs(node, delta, record);
    const judgedAnew = isDoubtful ? { held: { ...held, until: now } } : {};
    return { kind: 'confirm', record: { ...next, ...trialsOf(record), ...judgedAnew } };
  };
}

/**
 * Decides the pods that a delta says somebody else deleted; that is so whatever was heard before or after. Of one that
 * is not scheduled it is recorded when another taint manager evicted it: when it would have gone by us, or that it never
 * would.
 */
function deletionDecider(
  { scheduled, ended }: Partition,
  node: NodeState,
  delta: Delta,
  { rules }: Given,
): (pod: DeletedPod) => PodDecision | undefined {
  const deadlineOf = podDeadlines(node.taints, node.deletedAt, rules);
  const tells = node.taints.length > 0 && tellsOf(delta, node);
  return ({ uid, namespace, name, podSince, tolerations, deleted }) => {
    const record = scheduled.get(uid);
    if (record) return endAbsent(delta, record, 'gone', deleted);
    const before = ended.get(uid);
    if (before && (isTombstone(before) || before.deleted)) return repeatAbsent(delta, before);
    if (deleted.by !== 'taint-manager' || !tells) return before && repeatAbsent(delta, before);
    const { fireAt, reasons } =
      before?.outcome === 'would-have' ? before : due(deadlineOf(tolerations, podSince));
    const who = { uid, namespace, name, podSince };
    const { version } = delta;
    return {
      kind: 'evicted-elsewhere',
      ending: { ...who, fireAt, reasons, outcome: 'gone', deleted, version },
    };
  };
}

/** Of a pod that nothing of ours evicts: the latest moment that a date can hold. */
const NEVER: Pick<FinalRecord, 'fireAt' | 'reasons'> = { fireAt: 8.64e15, reasons: [] };

const due = (deadline: PodDeadline | undefined): Pick<FinalRecord, 'fireAt' | 'reasons'> =>
  deadline ? { fireAt: deadline.at, reasons: deadline.reasons } : NEVER;

/** What happened to a record since it fell due. */
function trialsOf({ failure, held, blocked, notBefore, turnAt }: EvictionRecord): Partial<EvictionRecord> {
  return {
    ...(failure ? { failure } : {}),
    ...(held ? { held } : {}),
    ...(blocked ? { blocked } : {}),
    ...(notBefore === undefined ? {} : { notBefore }),
    ...(turnAt === undefined ? {} : { turnAt }),
  };
}

/**
 * A record that nothing holds any more: it goes in its turn, and the time for which it was not tried does not count
 * as one of failing, or of waiting for a budget.
 */
function freed(
  before: EvictionRecord,
  { rank = 0 }: PodFacts,
  { policy }: Rules,
  now: EpochMs,
): EvictionRecord {
  const { held, failure, blocked, ...record } = before;
  // Equivalent mutant (OptionalChaining): Only what is held is freed; the type checker does not know.
  const heldMs = Math.max(0, now - (held?.since ?? now));
  return {
    ...record,
    ...(drainsOnRelease(before) ? { drains: true } : {}),
    ...(failure ? { failure: { ...failure, since: failure.since + heldMs } } : {}),
    ...(blocked ? { blocked: { ...blocked, since: blocked.since + heldMs } } : {}),
    notBefore: now + Math.floor((rank / policy.drain) * 1000),
  };
}

function recordOf(
  { uid, namespace, name, owner }: PodFacts,
  { at: fireAt, reasons }: PodDeadline,
  { version, observedAt }: Delta,
  { podSince, before }: { readonly podSince: EpochMs; readonly before: EvictionRecord | undefined },
): EvictionRecord {
  const who = { uid, namespace, name, ...(owner ? { owner } : {}) };
  const { startedAt = observedAt } = before ?? {};
  const drains = before && drainsOnRelease(before) ? ({ drains: true } as const) : {};
  return { ...who, podSince, startedAt, fireAt, reasons, version, ...drains };
}

function cancel({ version }: Delta, record: EvictionRecord, { taints }: NodeState): PodDecision {
  const cancelled = whyCancelled(record, taints);
  return { kind: 'cancel', ending: ending(record, { outcome: 'cancelled', cancelled }, version) };
}

/**
 * Ends the record of a pod that a delta says is not there. `gone`: it was seen to go, for good; `cancelled`: it is not
 * in the list, which may be older than what another relay, about to lose its lease, told of the pod.
 */
function endAbsent(
  { version }: Delta,
  record: EvictionRecord,
  outcome: 'gone' | 'cancelled',
  deleted?: Deletion,
): PodDecision {
  const how = { outcome, cancelled: 'pod-gone', ...(deleted ? { deleted } : {}) } as const;
  return { kind: 'cancel', ending: ending(record, how, version) };
}

/** What a delta that says that a pod is not there makes of a record that has ended. `undefined`: there is nothing to do. */
function repeatAbsent(delta: Delta, end: EndedPod): PodDecision | undefined {
  const told = isBy(delta, end) && isAnnounced({ ...end, cancelled: 'pod-gone' }, delta.observedAt);
  return told ? repeat(end) : undefined;
}

/** A pod overdue for longer has lost its timer: normally it goes within a second. */
export const REARM_OVERDUE_MS = 60_000;

/**
 * A node delta changes nothing about a pod; that is noted once, on the node, and not on each of its pods. What is
 * overdue gets a timer again, or, after a gap, whatever is due: its cluster may have been out of reach.
 */
function leaveAsItIs(
  node: NodeState,
  delta: Extract<Delta, { kind: 'node' }>,
  record: EvictionRecord | undefined,
): PodDecision | undefined {
  const moment = record && momentOf(record, node);
  // Equivalent mutant (ConditionalExpression): Without a record there is no moment either: the check is for
  // the type checker.
  if (record === undefined || moment === undefined) return undefined;
  const overdueMs = delta.observedAt - moment;
  return delta.wake || overdueMs > REARM_OVERDUE_MS ? { kind: 'rearm', record } : undefined;
}

/** A delta that is delivered again meets the record it ended. */
function repeat(end: EndedPod | undefined): PodDecision | undefined {
  return end && { kind: 'cancelled-before', ending: end };
}

const isBy = (delta: Delta, { version }: { readonly version: Version }): boolean =>
  compareVersions(delta.version, version) === 0;
