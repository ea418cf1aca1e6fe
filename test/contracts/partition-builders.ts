import { randomUUID } from 'node:crypto';
import { type ClusterName, clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import {
  type Cause,
  type EvictionRecord,
  ending,
  type FinalRecord,
  type NodeState,
  type Partition,
  type TimedTaint,
} from '#shared/eviction/records.ts';

/** A time in 2026; contracts drive the time and never read the clock. */
export const NOW = Date.UTC(2026, 10, 21, 12);

/** Returns a cluster that is unique in the store, so that contracts can share one store. */
export const aCluster = (prefix = 'cluster'): ClusterName => clusterName(`${prefix}-${randomUUID()}`);

export const aRef = (cluster = aCluster(), node = 'node-1'): NodeRef => ({ cluster, node: nodeName(node) });

export const aTaint = (fields: Partial<TimedTaint> = {}): TimedTaint => ({
  key: 'node.kubernetes.io/unreachable',
  effect: 'NoExecute',
  since: NOW - 1_000,
  known: 'added',
  ...fields,
});

export const aNode = (fields: Partial<NodeState> = {}): NodeState => ({
  taints: [aTaint()],
  version: { epoch: 1, sequence: 1 },
  observedAt: NOW,
  podsVersion: { epoch: 1, sequence: 1 },
  guardRevision: 3,
  ...fields,
});

/** Returns a cause of a deadline: a taint, as kubectl prints it, that the pod tolerates for a while. */
export const aReason = (key = 'node.kubernetes.io/unreachable', value?: string): Cause => ({
  taint: { key, ...(value === undefined ? {} : { value }), effect: 'NoExecute' },
  since: NOW - 1_000,
  known: 'added',
  toleration: 1,
  seconds: 300,
});

/** Returns a scheduled record, due 300 s after `NOW`. */
export const aRecord = (fields: Partial<EvictionRecord> = {}): EvictionRecord => ({
  uid: podUid(randomUUID()),
  namespace: 'default',
  name: 'web-0',
  podSince: NOW - 60_000,
  startedAt: NOW,
  dueAt: NOW + 300_000,
  causes: [aReason()],
  version: { epoch: 1, sequence: 1 },
  ...fields,
});

export const someRecords = (count: number, fields: Partial<EvictionRecord> = {}): readonly EvictionRecord[] =>
  Array.from({ length: count }, (_, index) => aRecord({ name: `web-${index}`, ...fields }));

/** Returns the end of a record: evicted by default. */
export const anEnding = (record = aRecord(), how: Partial<FinalRecord> = {}): FinalRecord => ({
  ...ending(record, { outcome: 'evicted' }),
  ...how,
});

/** Returns the state of each pod, by UID: `scheduled`, or the outcome of its record. */
export const outcomesOf = ({ scheduled, ended }: Partition): Readonly<Record<string, string>> => ({
  ...Object.fromEntries([...ended.values()].map(({ uid, outcome }) => [uid, outcome])),
  ...Object.fromEntries([...scheduled.keys()].map((uid) => [uid, 'scheduled'])),
});
