import { type CancelReason, isAnnounced, whyCancelled } from './cancellation.ts';
import type { Delta, NodeDelta, PodFacts } from './facts.ts';
import type { EpochMs } from './identity.ts';
import { dueAt, type PodDeadline } from './pod-deadline.ts';
import { type EvictionRecord, isTombstone, type NodeState } from './records.ts';
import { compareVersions, newer } from './version.ts';

/** What becomes of one pod. All but `cancel` and `cancelled-before` want a timer at the record's `fireAt`. */
export type PodDecision =
  | { readonly kind: 'schedule' | 'reschedule' | 'confirm' | 'rearm'; readonly record: EvictionRecord }
  | { readonly kind: 'cancel'; readonly record: EvictionRecord; readonly because: CancelReason }
  | { readonly kind: 'cancelled-before'; readonly record: EvictionRecord };

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

/** Decides a pod that a delta says is on the node. `undefined`: there is nothing to do. */
export function decidePod(
  { delta, known, node, deadlineOf }: Hearing,
  pod: PodFacts,
  record: EvictionRecord | undefined,
): PodDecision | undefined {
  if (record && isTombstone(record)) return undefined;
  if (record && isBy(delta, record)) return repeat(record);
  const scheduled = record?.state === 'scheduled' ? record : undefined;
  const heard = newer(record?.version, known?.podsVersion);
  const age = heard ? compareVersions(delta.version, heard) : 1;
  if (age < 0) return undefined;
  if (age === 0 && delta.kind === 'node') return stand(delta, scheduled);
  const podSince = record?.podSince ?? pod.podSince;
  const deadline = deadlineOf(pod.tolerations, podSince);
  if (!deadline) {
    if (!scheduled) return undefined;
    const cancelled: EvictionRecord = { ...scheduled, state: 'cancelled', version: delta.version };
    return { kind: 'cancel', record: cancelled, because: whyCancelled(scheduled, node.taints) };
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
    state: 'scheduled',
  };
  if (!scheduled) return { kind: 'schedule', record: next };
  if (scheduled.fireAt !== fireAt) return { kind: 'reschedule', record: next };
  return delta.kind === 'node' ? stand(delta, scheduled) : { kind: 'confirm', record: next };
}

/**
 * Decides a pod that a delta says is not there. `gone`: it was seen to go, for good; `cancelled`: it is not in the
 * list, which may be older than what another relay, about to lose its lease, told of the pod. `undefined`: there is
 * nothing to do.
 */
export function decideAbsent(
  delta: Delta,
  record: EvictionRecord,
  state: 'gone' | 'cancelled',
): PodDecision | undefined {
  if (record.state === 'scheduled') {
    const ended: EvictionRecord = { ...record, state, version: delta.version };
    return { kind: 'cancel', record: ended, because: 'pod-gone' };
  }
  const told = isBy(delta, record) && isAnnounced({ record, because: 'pod-gone' }, delta.observedAt);
  return told ? repeat(record) : undefined;
}

/** A node delta leaves a pod as it is; that is noted once, on the node, and not on each of its pods. */
function stand(delta: NodeDelta, scheduled: EvictionRecord | undefined): PodDecision | undefined {
  if (!scheduled) return undefined;
  const overdueMs = delta.observedAt - scheduled.fireAt;
  return delta.wake || overdueMs < REARM_OVERDUE_MS ? { kind: 'rearm', record: scheduled } : undefined;
}

/** A delta that is delivered again meets the record it wrote. */
function repeat(record: EvictionRecord): PodDecision | undefined {
  if (record.state === 'done') return undefined;
  return { kind: record.state === 'scheduled' ? 'rearm' : 'cancelled-before', record };
}

const isBy = (delta: Delta, record: EvictionRecord): boolean =>
  compareVersions(delta.version, record.version) === 0;
