import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Hold, Stop } from '#shared/eviction/policy.ts';
import type { CancelReason, Cause } from '#shared/eviction/records.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { ShownAct } from '#shared/explain/gate-text.ts';
import { shownAct } from '#shared/explain/gates.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Stored records with the field names of `-o json`, `-o yaml`, and the console API. Stored data keeps the
 * names that older releases read.
 */

export interface StopOutput extends ShownAct, Pick<Stop, 'scope' | 'until'> {}

/** The stop of all clusters. */
export interface FleetStopOutput extends StopOutput {
  /** Clusters that were resumed alone. Absent: none. */
  readonly resumed?: readonly ClusterName[];
}

export interface HoldOutput extends ShownAct, Pick<Hold, 'id' | 'target' | 'until'> {}

export interface AuditOutput {
  /** Absent: the entry concerns all clusters. */
  readonly cluster?: ClusterName;
  readonly at: EpochMs;
  readonly actor: string;
  readonly kind: AuditEntry['kind'];
  /** The act as a sentence. */
  readonly message: string;
  readonly reason?: string;
  /** With `policy`: the former document. */
  readonly before?: string;
  /** With `policy`: the new document. */
  readonly after?: string;
}

export interface StuckOutput extends Omit<StuckPod, 'gracePeriodEndedAt'> {
  readonly gracePeriodEndedAt: EpochMs;
}

/** Event of an eviction. Where a notification exists, its name is used. */
export type EvictionEvent =
  | 'scheduled'
  | 'rescheduled'
  | 'held'
  | 'released'
  | 'blocked'
  | 'would-evict'
  | 'failed'
  | 'evicted'
  | 'already-gone'
  | 'canceled'
  | 'unregistered';

export interface EntryOutput {
  readonly at: EpochMs;
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: PodUid;
  readonly event: EvictionEvent;
  /** The deadline at that time. Absent: no taint required the eviction. */
  readonly dueAt?: EpochMs;
  /** With `rescheduled`: the former deadline. */
  readonly previousDueAt?: EpochMs;
  /** With `held`, `would-evict`, `released`, and `already-gone`: the gate that held the pod. */
  readonly by?: EvictionGate;
  /** With `evicted`: the time from the deadline to the deletion. */
  readonly delayMs?: number;
  /** Time at which the deleted pod was removed from the API server. */
  readonly removedAt?: EpochMs;
  readonly cancelReason?: CancelReason;
  readonly error?: string;
  /** The deletion of the pod by another client. */
  readonly deleted?: Deletion;
  readonly causes: readonly Cause[];
}

export const EVENTS: Readonly<Record<HistoryEntry['what'], EvictionEvent>> = {
  scheduled: 'scheduled',
  moved: 'rescheduled',
  held: 'held',
  freed: 'released',
  blocked: 'blocked',
  'would-have': 'would-evict',
  'gave-up': 'failed',
  done: 'evicted',
  gone: 'already-gone',
  cancelled: 'canceled',
  unregistered: 'unregistered',
};

export const stopOutput = (stop: Stop): StopOutput => ({
  scope: stop.scope,
  ...shownAct(stop),
  ...(stop.until === undefined ? {} : { until: stop.until }),
});

export const holdOutput = (hold: Hold): HoldOutput => ({
  id: hold.id,
  target: hold.target,
  ...shownAct(hold),
  ...(hold.until === undefined ? {} : { until: hold.until }),
});

export const auditOutput = ({
  who: actor,
  what: message,
  why: reason,
  ...entry
}: AuditEntry): AuditOutput => ({
  ...entry,
  actor,
  message,
  ...(reason === undefined ? {} : { reason }),
});

export const stuckOutput = <Pod extends StuckPod>({
  gracePeriodEndedAt,
  ...pod
}: Pod): Omit<Pod, 'gracePeriodEndedAt'> & StuckOutput => ({ ...pod, gracePeriodEndedAt });

export function entryOutput(entry: HistoryEntry): EntryOutput {
  const { at, ref, uid, namespace, name: pod, what, dueAt, causes } = entry;
  const { previousDueAt, by, delayMs, removedAt, cancelled, error, deleted } = entry;
  return {
    at,
    cluster: ref.cluster,
    node: ref.node,
    namespace,
    pod,
    uid,
    event: EVENTS[what],
    ...(causes.length === 0 ? {} : { dueAt }),
    ...(previousDueAt === undefined ? {} : { previousDueAt }),
    ...(by ? { by } : {}),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(removedAt === undefined ? {} : { removedAt }),
    ...(cancelled === undefined ? {} : { cancelReason: cancelled }),
    ...(error === undefined ? {} : { error }),
    ...(deleted ? { deleted } : {}),
    causes,
  };
}
