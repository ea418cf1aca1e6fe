import { defined } from '#shared/defined.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import {
  begunBy,
  compareVersions,
  DELTA_MAX_AGE_MS,
  type DeletedPod,
  type Delta,
  newer,
  type PodFacts,
  type Version,
} from './facts.ts';
import { isOfPod, isOfTaints, mayStillHold, storedGate } from './gate.ts';
import { coversTaints, mergeNodeState, raiseStarts, sameFacts } from './node-state.ts';
import { effectiveDeadline, type PodDeadline, podDeadlines } from './pod-deadline.ts';
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
  whyCanceled,
} from './records.ts';
import { momentOf } from './retry.ts';

export interface PlanTime {
  readonly now: EpochMs;
  /** Epoch of the cluster's lease; absent: no relay has ever acquired the lease. */
  readonly leaseEpoch?: number | undefined;
}

/**
 * The decision about one pod.
 * - `schedule`: it gets a deadline; `reschedule`: its deadline moves; `confirm`: its deadline stays. A confirmation
 *   is stored, so that older deltas are recognized as such. It also reevaluates a pod that is held for its taints.
 * - `free`: the pod was held, and its gate opened. It is evicted in its turn.
 * - `rearm`: nothing changes, but the pod's timer may be lost.
 * - The decisions above need a timer for the record's deadline, its turn, or the end of its hold.
 * - `cancel`: nothing requires the eviction any more, or the pod is gone.
 * - `evicted-elsewhere`: another taint manager evicted the pod before it was ever scheduled, or when it was no longer
 *   scheduled.
 * - `canceled-before`: this delta canceled the eviction on an earlier delivery, and the Event may not have been
 *   posted.
 */
export type PodDecision =
  | {
      readonly kind: 'schedule' | 'reschedule' | 'confirm' | 'free' | 'rearm';
      readonly record: EvictionRecord;
    }
  | { readonly kind: 'cancel'; readonly ending: FinalRecord }
  | { readonly kind: 'evicted-elsewhere'; readonly ending: FinalRecord }
  | { readonly kind: 'canceled-before'; readonly ending: EndedPod };

export interface Plan {
  /** The NODE item's new content; absent: nothing to store. */
  readonly node?: NodeState;
  /** The new content has new facts about the node, not only about the delta. */
  readonly nodeChanged: boolean;
  readonly decisions: readonly PodDecision[];
  /** The node has taints that evict, or pods that are scheduled. */
  readonly live: boolean;
}

/**
 * Decides what a delta changes in one partition. Pure and idempotent: the same delta again changes nothing and arms the
 * same timers. Old or reordered deltas never override newer facts; those of a relay that lost its lease, or older than
 * two resyncs, decide nothing. The partition must hold the records of the delta's pods (a node delta: all records). The
 * delta defines the virtual taints: when they change, its relay sends a new one.
 */
export function plan(partition: Partition, delta: Delta, rules: Rules, received: PlanTime): Plan {
  // A delta can't be received before it was observed: a clock that shows this is behind, and would start countdowns too early.
  const moment = { ...received, now: Math.max(received.now, delta.observedAt) };
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
  const isWoken = node?.retry !== known?.retry || node?.outage !== known?.outage;
  const written = nodeChanged || node?.podsVersion !== known?.podsVersion || isWoken;
  return {
    ...(node && written ? { node } : {}),
    nodeChanged,
    decisions,
    live: isTainted(node) || leavesScheduled(partition, decisions),
  };
}

/**
 * Reports whether pods stay scheduled. A node's older delta may arrive after a newer one of a pod that it does not
 * list.
 */
function leavesScheduled({ scheduled }: Partition, decisions: readonly PodDecision[]): boolean {
  const left = new Set(scheduled.keys());
  for (const decision of decisions) if ('ending' in decision) left.delete(decision.ending.uid);
  return left.size > 0;
}

function isCurrent({ version, observedAt }: Delta, { now, leaseEpoch = 0 }: PlanTime): boolean {
  return version.epoch >= leaseEpoch && now - observedAt <= DELTA_MAX_AGE_MS;
}

/** A delta that may not decide still rearms its node's timers, and a pod whose removal was seen is gone. */
function remindOf({ scheduled }: Partition, delta: Delta): readonly PodDecision[] {
  const records = delta.kind === 'node' ? [...scheduled.values()] : [scheduled.get(uidOf(delta))];
  return records
    .filter((record) => record !== undefined)
    .map((record) =>
      delta.kind === 'pod-gone'
        ? endAbsent(delta, record, 'already-gone', delta.deleted && { deleted: delta.deleted.deleted })
        : { kind: 'rearm', record },
    );
}

const uidOf = (delta: Exclude<Delta, { kind: 'node' }>) => (delta.kind === 'pod' ? delta.pod.uid : delta.uid);

interface PlanInputs {
  readonly rules: Rules;
  readonly now: EpochMs;
}

function decidePods(
  partition: Partition,
  node: NodeState,
  delta: Delta,
  given: PlanInputs,
): readonly PodDecision[] {
  const { scheduled, ended } = partition;
  const decide = podDecider(partition, node, delta, given);
  const decideDeleted = deletionDecider(partition, node, delta, given);
  const decisions: (PodDecision | undefined)[] = [];
  switch (delta.kind) {
    case 'node': {
      const untainted = delta.taints.length === 0 && delta.deletedAt === undefined;
      const present = new Set([...delta.pods.map((pod) => pod.uid), ...(delta.others ?? [])]);
      const deleted = new Set(delta.deleted?.map(({ uid }) => uid));
      for (const record of scheduled.values()) {
        if (deleted.has(record.uid)) continue;
        const missing = !present.has(record.uid) && compareVersions(delta.version, record.version) >= 0;
        // The delta of a node without taints does not list its pods.
        if (missing)
          decisions.push(untainted ? cancel(delta, record, node) : endAbsent(delta, record, 'canceled'));
      }
      for (const ending of ended.values()) {
        if (present.has(ending.uid) || scheduled.has(ending.uid) || deleted.has(ending.uid)) continue;
        decisions.push(untainted && isBy(delta, ending) ? repeat(ending) : repeatAbsent(delta, ending));
      }
      for (const pod of delta.pods) decisions.push(decide(pod));
      for (const pod of delta.deleted ?? []) decisions.push(decideDeleted(pod));
      break;
    }
    case 'pod':
      decisions.push(decide(delta.pod));
      break;
    case 'pod-gone': {
      // UIDs are never reused, so the order of deltas doesn't matter.
      const [record, before] = [scheduled.get(delta.uid), ended.get(delta.uid)];
      if (delta.deleted) decisions.push(decideDeleted(delta.deleted));
      else if (record) decisions.push(endAbsent(delta, record, 'already-gone'));
      else if (before) decisions.push(repeatAbsent(delta, before));
      break;
    }
    default:
      return delta satisfies never;
  }
  return decisions.filter((decision) => decision !== undefined);
}

/** The function returns `undefined` if there is nothing to do. */
function podDecider(
  { node: known, scheduled, ended }: Partition,
  node: NodeState,
  delta: Delta,
  { rules, now }: PlanInputs,
): (pod: PodFacts) => PodDecision | undefined {
  const deadlineOf = podDeadlines(node.taints, node.deletedAt, rules);
  const covers = coversTaints(delta, node);
  return (pod) => {
    const record = scheduled.get(pod.uid);
    const end = ended.get(pod.uid);
    if (end && isTombstone(end)) return undefined;
    const last = record ?? end;
    const isFree = record?.held && delta.kind === 'node' && !mayStillHold(record.held.by, rules, now);
    if (last && isBy(delta, last) && !isFree) return record ? { kind: 'rearm', record } : repeat(end);
    // A node delta with this pod and the current taints was received already, or is still to come.
    if (!covers) return undefined;
    const newest = newer(last?.version, known?.podsVersion);
    const age = newest ? compareVersions(delta.version, newest) : 1;
    if (age < 0) return undefined;
    if (age === 0 && delta.kind === 'node' && !isFree) return leaveAsItIs(node, delta, record);
    // An older release stored any time, even one in the future.
    const podSince = begunBy(last?.podSince ?? pod.podSince, now);
    const deadline = deadlineOf(pod.tolerations, podSince);
    if (!deadline) return record && cancel(delta, record, node);
    const dueAt = effectiveDeadline(deadline.at, delta.observedAt, record);
    if (record?.gaveUpAt !== undefined && record.dueAt === dueAt) return undefined;
    const fresh = recordOf(pod, { ...deadline, at: dueAt }, delta, { podSince, before: record });
    const recreated = record?.recreated ?? isRecreated(pod, { scheduled, ended }, now);
    const next: EvictionRecord = recreated ? { ...fresh, recreated } : fresh;
    if (!record) return { kind: 'schedule', record: next };
    if (record.dueAt !== dueAt) return { kind: 'reschedule', record: next };
    if (isFree) return { kind: 'free', record: freed(record, pod, rules, now) };
    const { held } = record;
    // The gate may not apply to another taint that evicts the pod, or with the pod's new tolerations or labels.
    const isDoubtful =
      held && (delta.kind === 'pod' ? isOfPod(held.by) : isOfTaints(held.by) && !sameFacts(known, node));
    if (delta.kind === 'node' && !isDoubtful) return leaveAsItIs(node, delta, record);
    const evaluatedAgain = isDoubtful ? { held: { ...held, until: now } } : {};
    return { kind: 'confirm', record: { ...next, ...trialsOf(record), ...evaluatedAgain } };
  };
}

/**
 * In any order of deltas. Of an unscheduled pod, only an eviction by another taint manager is recorded, at the time
 * when Taintward would have evicted it, or `NEVER`.
 */
function deletionDecider(
  { scheduled, ended }: Partition,
  node: NodeState,
  delta: Delta,
  { rules, now }: PlanInputs,
): (pod: DeletedPod) => PodDecision | undefined {
  const deadlineOf = podDeadlines(node.taints, node.deletedAt, rules);
  const covers = node.taints.length > 0 && coversTaints(delta, node);
  return ({ uid, namespace, name, podSince, tolerations, deleted }) => {
    const record = scheduled.get(uid);
    const gateOf = (pod: Parameters<typeof storedGate>[2]) => {
      const gate = storedGate(rules, { ...node, node: delta.ref.node }, pod, now);
      return gate && gate.kind !== 'observe' ? { by: gate } : {};
    };
    if (record) return endAbsent(delta, record, 'already-gone', { deleted, ...gateOf(record) });
    const before = ended.get(uid);
    if (before && (isTombstone(before) || before.deleted)) return repeatAbsent(delta, before);
    if (deleted.by !== 'taint-manager' || !covers) return before && repeatAbsent(delta, before);
    const { dueAt, causes } =
      before?.outcome === 'would-evict' ? before : due(deadlineOf(tolerations, podSince));
    const who = { uid, namespace, name, podSince };
    const { version } = delta;
    const gate = before?.outcome === 'would-evict' ? {} : gateOf({ ...who, causes });
    return {
      kind: 'evicted-elsewhere',
      ending: { ...who, dueAt, causes, outcome: 'already-gone', deleted, version, ...gate },
    };
  };
}

/** The deadline of a pod that Taintward does not evict: the latest time that a date can hold. */
const NEVER: Pick<FinalRecord, 'dueAt' | 'causes'> = { dueAt: 8.64e15, causes: [] };

const due = (deadline: PodDeadline | undefined): Pick<FinalRecord, 'dueAt' | 'causes'> =>
  deadline ? { dueAt: deadline.at, causes: deadline.causes } : NEVER;

/**
 * A kubelet recreated a static pod after its eviction: the earlier pod was due, and no other gate held it. Its end may
 * not be stored yet.
 */
function isRecreated(
  { uid, namespace, name, owner }: PodFacts,
  { scheduled, ended }: Pick<Partition, 'scheduled' | 'ended'>,
  now: EpochMs,
): boolean {
  if (owner?.kind !== 'Node') return false;
  const earlier = [
    ...[...scheduled.values()].map(({ held, ...pod }) => ({ ...pod, by: held?.by, until: now })),
    ...[...ended.values()].filter(isTombstone).map((pod) => ({ ...pod, until: pod.endedAt })),
  ];
  return earlier.some(
    ({ by: gate, until, ...pod }) =>
      pod.uid !== uid &&
      pod.namespace === namespace &&
      pod.name === name &&
      pod.dueAt <= until &&
      (gate === undefined || gate.kind === 'recreated'),
  );
}

function trialsOf({ failure, held, blocked, notBefore, turnAt }: EvictionRecord): Partial<EvictionRecord> {
  return {
    ...defined({ failure, held, blocked, notBefore, turnAt }),
  };
}

/** The time for which the pod was held does not count as time of failing, or of waiting for a budget. */
function freed(
  before: EvictionRecord,
  { rank = 0 }: PodFacts,
  { policy }: Rules,
  now: EpochMs,
): EvictionRecord {
  const { held, failure, blocked, ...record } = before;
  const heldMs = Math.max(0, now - (held?.since ?? now));
  return {
    ...record,
    ...(drainsOnRelease(before) ? { drains: true } : {}),
    ...(failure ? { failure: { ...failure, since: failure.since + heldMs } } : {}),
    ...(blocked ? { blocked: { ...blocked, since: blocked.since + heldMs } } : {}),
    notBefore: now + Math.floor((rank / policy.releaseRate) * 1000),
  };
}

function recordOf(
  { uid, namespace, name, owner }: PodFacts,
  { at: dueAt, causes }: PodDeadline,
  { version, observedAt }: Delta,
  { podSince, before }: { readonly podSince: EpochMs; readonly before: EvictionRecord | undefined },
): EvictionRecord {
  const who = { uid, namespace, name, ...defined({ owner }) };
  const { startedAt = observedAt } = before ?? {};
  const drains = before && drainsOnRelease(before) ? ({ drains: true } as const) : {};
  return { ...who, podSince, startedAt, dueAt, causes, version, ...drains };
}

function cancel({ version }: Delta, record: EvictionRecord, { taints }: NodeState): PodDecision {
  const cancelReason = whyCanceled(record, taints);
  return { kind: 'cancel', ending: ending(record, { outcome: 'canceled', cancelReason }, version) };
}

/**
 * `already-gone`: the removal was seen, which is final. `canceled`: the pod is not listed. Another relay, which is about
 * to lose its lease, may have sent newer facts about it.
 */
function endAbsent(
  { version }: Delta,
  record: EvictionRecord,
  outcome: 'already-gone' | 'canceled',
  more: Pick<FinalRecord, 'deleted' | 'by'> = {},
): PodDecision {
  const how = { outcome, cancelReason: 'pod-gone', ...more } as const;
  return { kind: 'cancel', ending: ending(record, how, version) };
}

/** `undefined`: there is nothing to do. */
function repeatAbsent(delta: Delta, end: EndedPod): PodDecision | undefined {
  const announced = isBy(delta, end) && isAnnounced({ ...end, cancelReason: 'pod-gone' }, delta.observedAt);
  return announced ? repeat(end) : undefined;
}

/** A pod that is overdue for longer has lost its timer: usually it is evicted within a second. */
export const REARM_OVERDUE_MS = 60_000;

/**
 * The version is stored once, on the node. An overdue pod gets a timer again; after a gap (`wake`), every pod does: the
 * cluster may have been unreachable.
 */
function leaveAsItIs(
  node: NodeState,
  delta: Extract<Delta, { kind: 'node' }>,
  record: EvictionRecord | undefined,
): PodDecision | undefined {
  const moment = record && momentOf(record, node);
  if (record === undefined || moment === undefined) return undefined;
  const overdueMs = delta.observedAt - moment;
  return delta.wake || overdueMs > REARM_OVERDUE_MS ? { kind: 'rearm', record } : undefined;
}

function repeat(end: EndedPod | undefined): PodDecision | undefined {
  return end && { kind: 'canceled-before', ending: end };
}

const isBy = (delta: Delta, { version }: { readonly version: Version }): boolean =>
  compareVersions(delta.version, version) === 0;
