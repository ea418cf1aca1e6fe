import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { Hold, Stop } from '#shared/eviction/policy.ts';
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

export interface EntryOutput extends Omit<HistoryEntry, 'ref' | 'name' | 'dueAt'> {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly pod: string;
  /** The deadline at that time. Absent: no taint required the eviction. */
  readonly dueAt?: EpochMs;
}

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

export const entryOutput = ({
  at,
  ref: { cluster, node },
  namespace,
  name: pod,
  uid,
  event,
  dueAt,
  causes,
  ...entry
}: HistoryEntry): EntryOutput => ({
  at,
  cluster,
  node,
  namespace,
  pod,
  uid,
  event,
  ...(causes.length === 0 ? {} : { dueAt }),
  ...entry,
  causes,
});
