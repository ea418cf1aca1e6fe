import type { MatchOptions } from '#shared/taints/taint.ts';
import { decidePod, endAbsent, type Hearing, type PodDecision, repeatAbsent } from './decide-pod.ts';
import { DELTA_MAX_AGE_MS, type Delta, type PodFacts } from './facts.ts';
import type { EpochMs } from './identity.ts';
import { mergeNodeState, raiseStarts, sameFacts, tellsOf } from './node-state.ts';
import { podDeadlines } from './pod-deadline.ts';
import type { EndedPod, Ending, EvictionRecord, NodeState, Partition } from './records.ts';
import { compareVersions } from './version.ts';

/** When and under whom a delta is heard. */
export interface Moment {
  readonly now: EpochMs;
  /** Of the cluster's lease; absent: nobody has ever taken it. */
  readonly leaseEpoch?: number | undefined;
}

/** What a delta asks for, as data. */
export interface Plan {
  /** The NODE item's new content; absent = nothing to store. */
  readonly node?: NodeState;
  /** Whether that says something new of the node, and not only of the delta. */
  readonly nodeChanged: boolean;
  /** Pods that get a deadline. */
  readonly schedule: readonly EvictionRecord[];
  /** Pods whose deadline moves. */
  readonly reschedule: readonly EvictionRecord[];
  /** Pods whose deadline stands; stored, so that older deltas are known as such. */
  readonly confirm: readonly EvictionRecord[];
  /** Pods whose deadline goes. */
  readonly cancel: readonly Ending[];
  /** Cancellations this very delta caused on an earlier delivery: their Events may not have been posted. */
  readonly cancelledBefore: readonly EndedPod[];
  /** Every distinct moment this delta sets or confirms; delivered again after a crash, the same. */
  readonly arm: readonly EpochMs[];
  /** Whether anything on the node is still to be watched over. */
  readonly live: boolean;
}

/**
 * Decides what a delta changes in one node's partition. Pure and idempotent: the same delta again changes
 * nothing and arms the same timers. Old or reordered deltas never override newer facts; those of a relay that has
 * lost its lease, and those older than two resyncs, decide nothing at all. The partition must hold the records the
 * delta speaks of (all, for a node delta).
 */
export function plan(partition: Partition, delta: Delta, options: MatchOptions, moment: Moment): Plan {
  const known = partition.node;
  const counts = isCurrent(delta, moment);
  const node = counts
    ? mergeNodeState(known, delta, moment.now)
    : known && raiseStarts(known, delta, moment.now);
  const decisions = counts && node ? decidePods(partition, node, delta, options) : remindOf(partition, delta);
  const of = <Kind extends PodDecision['kind']>(kind: Kind) =>
    decisions.filter((each): each is Extract<PodDecision, { kind: Kind }> => each.kind === kind);
  const recordsOf = (kind: 'schedule' | 'reschedule' | 'confirm' | 'rearm') =>
    of(kind).map(({ record }) => record);
  const schedule = recordsOf('schedule');
  const reschedule = recordsOf('reschedule');
  const confirm = recordsOf('confirm');
  const armed = [...schedule, ...reschedule, ...confirm, ...recordsOf('rearm')].map(({ fireAt }) => fireAt);
  const nodeChanged = node !== undefined && !sameFacts(known, node);
  return {
    ...(node && (nodeChanged || node.podsVersion !== known?.podsVersion) ? { node } : {}),
    nodeChanged,
    schedule,
    reschedule,
    confirm,
    cancel: of('cancel').map((each) => each.ending),
    cancelledBefore: of('cancelled-before').map((each) => each.ending),
    arm: [...new Set(armed)].sort((a, b) => a - b),
    live: (node?.taints.length ?? 0) > 0,
  };
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
      delta.kind === 'pod-gone' ? endAbsent(delta, record, 'gone') : { kind: 'rearm', record },
    );
}

const uidOf = (delta: Exclude<Delta, { kind: 'node' }>) => (delta.kind === 'pod' ? delta.pod.uid : delta.uid);

function decidePods(
  partition: Partition,
  node: NodeState,
  delta: Delta,
  options: MatchOptions,
): readonly PodDecision[] {
  const { scheduled, ended } = partition;
  const deadlineOf = podDeadlines(node.taints, node.deletedAt, options);
  const hearing: Hearing = { delta, known: partition.node, node, deadlineOf };
  const decide = (pod: PodFacts) => decidePod(hearing, pod, scheduled.get(pod.uid), ended.get(pod.uid));
  const decisions: (PodDecision | undefined)[] = [];
  switch (delta.kind) {
    case 'node': {
      const present = new Set([...delta.pods.map((pod) => pod.uid), ...(delta.others ?? [])]);
      for (const record of scheduled.values()) {
        const missing = !present.has(record.uid) && compareVersions(delta.version, record.version) >= 0;
        if (missing) decisions.push(endAbsent(delta, record, 'cancelled'));
      }
      for (const each of ended.values()) {
        if (!present.has(each.uid) && !scheduled.has(each.uid)) decisions.push(repeatAbsent(delta, each));
      }
      // Else its node delta, which tells of these pods too, has been heard, or is still to come.
      if (tellsOf(delta, node)) {
        for (const pod of delta.pods) decisions.push(decide(pod));
      }
      break;
    }
    case 'pod':
      if (tellsOf(delta, node)) decisions.push(decide(delta.pod));
      break;
    case 'pod-gone': {
      // A UID never returns, so this holds whatever was heard before or after.
      const [record, before] = [scheduled.get(delta.uid), ended.get(delta.uid)];
      if (record) decisions.push(endAbsent(delta, record, 'gone'));
      else if (before) decisions.push(repeatAbsent(delta, before));
      break;
    }
    default:
      return delta satisfies never;
  }
  return decisions.filter((decision) => decision !== undefined);
}

/** Whether a plan leaves the partition as it is. */
export function changesNothing(plan: Plan): boolean {
  const written = [plan.schedule, plan.reschedule, plan.confirm, plan.cancel];
  return !plan.node && written.every((records) => records.length === 0);
}
