import { isAnnounced, whyCancelled } from './cancellation.ts';
import type { Delta, NodeDelta, PodFacts } from './facts.ts';
import type { EpochMs } from './identity.ts';
import { dueAt, type PodDeadline } from './pod-deadline.ts';
import {
  type EndedPod,
  type Ending,
  type EvictionRecord,
  ending,
  isTombstone,
  type NodeState,
} from './records.ts';
import { compareVersions, newer, type Version } from './version.ts';

/** What becomes of one pod. All but `cancel` and `cancelled-before` want a timer at the record's `fireAt`. */
export type PodDecision =
  | { readonly kind: 'schedule' | 'reschedule' | 'confirm' | 'rearm'; readonly record: EvictionRecord }
  | { readonly kind: 'cancel'; readonly ending: Ending }
  | { readonly kind: 'cancelled-before'; readonly ending: EndedPod };

/** What a delta is held against: the node as it was known, and as it is with the delta. */
export interface Hearing {
  readonly delta: Delta;
  readonly known: NodeState | undefined;
  readonly node: NodeState;
  readonly deadlineOf: (tolerations: PodFacts['tolerations'], podSince: EpochMs) => PodDeadline | undefined;
}

/**
 * How long after its deadline a pod still gets a new timer from a resync: two resync intervals, because its timer
 * may have been lost before it was armed. Later it is being retried, or is a dead letter with an alarm.
 */
export const REARM_OVERDUE_MS = 20 * 60_000;

/**
 * Decides a pod that a delta says is on the node, by its record and by the end of an earlier one. `undefined`: there
 * is nothing to do.
 */
export function decidePod(
  { delta, known, node, deadlineOf }: Hearing,
  pod: PodFacts,
  scheduled: EvictionRecord | undefined,
  ended: EndedPod | undefined,
): PodDecision | undefined {
  if (ended && isTombstone(ended)) return undefined;
  const last = scheduled ?? ended;
  if (last && isBy(delta, last)) return scheduled ? { kind: 'rearm', record: scheduled } : repeat(ended);
  const heard = newer(last?.version, known?.podsVersion);
  const age = heard ? compareVersions(delta.version, heard) : 1;
  if (age < 0) return undefined;
  if (age === 0 && delta.kind === 'node') return stand(delta, scheduled);
  const podSince = last?.podSince ?? pod.podSince;
  const deadline = deadlineOf(pod.tolerations, podSince);
  if (!deadline) {
    if (!scheduled) return undefined;
    const cancelled = whyCancelled(scheduled, node.taints);
    return { kind: 'cancel', ending: ending(scheduled, { outcome: 'cancelled', cancelled }, delta.version) };
  }
  const fireAt = dueAt(deadline.at, delta.observedAt, scheduled);
  const next: EvictionRecord = {
    uid: pod.uid,
    namespace: pod.namespace,
    name: pod.name,
    podSince,
    startedAt: scheduled?.startedAt ?? delta.observedAt,
    fireAt,
    because: deadline.because,
    version: delta.version,
  };
  if (!scheduled) return { kind: 'schedule', record: next };
  if (scheduled.fireAt !== fireAt) return { kind: 'reschedule', record: next };
  return delta.kind === 'node' ? stand(delta, scheduled) : { kind: 'confirm', record: next };
}

/**
 * Ends the record of a pod that a delta says is not there. `gone`: it was seen to go, for good; `cancelled`: it is not
 * in the list, which may be older than what another relay, about to lose its lease, told of the pod.
 */
export function endAbsent(
  delta: Delta,
  scheduled: EvictionRecord,
  outcome: 'gone' | 'cancelled',
): PodDecision {
  return { kind: 'cancel', ending: ending(scheduled, { outcome, cancelled: 'pod-gone' }, delta.version) };
}

/** Decides a pod that a delta says is not there, whose record has ended. `undefined`: there is nothing to do. */
export function repeatAbsent(delta: Delta, ended: EndedPod): PodDecision | undefined {
  const told = isBy(delta, ended) && isAnnounced({ ...ended, cancelled: 'pod-gone' }, delta.observedAt);
  return told ? repeat(ended) : undefined;
}

/** A node delta leaves a pod as it is; that is noted once, on the node, and not on each of its pods. */
function stand(delta: NodeDelta, scheduled: EvictionRecord | undefined): PodDecision | undefined {
  if (!scheduled) return undefined;
  const overdueMs = delta.observedAt - scheduled.fireAt;
  return delta.wake || overdueMs < REARM_OVERDUE_MS ? { kind: 'rearm', record: scheduled } : undefined;
}

/** A delta that is delivered again meets the record it ended. */
function repeat(ended: EndedPod | undefined): PodDecision | undefined {
  return ended && ended.outcome !== 'done' ? { kind: 'cancelled-before', ending: ended } : undefined;
}

const isBy = (delta: Delta, { version }: { readonly version: Version }): boolean =>
  compareVersions(delta.version, version) === 0;
