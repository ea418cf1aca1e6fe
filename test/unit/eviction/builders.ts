import type {
  Delta,
  NodeDelta,
  PodDelta,
  PodFacts,
  PodGoneDelta,
  SeenTaint,
} from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { type Moment, type Plan, plan } from '#shared/eviction/plan.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import type { Toleration } from '#shared/taints/taint.ts';

/** When tests start; a whole second. Other moments are given in seconds after it. */
const START = Date.UTC(2026, 0, 1);
export const at = (seconds: number) => START + seconds * 1000;

export const ref = { cluster: clusterName('c1'), node: nodeName('n1') };
export const options = { comparisonOperators: false };

/** Tolerates `key` for `seconds`; for ever without. */
export const tolerating = (key: string, seconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: BigInt(seconds) }),
});

/** The taint `key`, that appeared at that second. */
export const taint = (key: string, seenSecond = 0, value?: string): SeenTaint => ({
  key,
  ...(value === undefined ? {} : { value }),
  effect: 'NoExecute',
  known: 'appeared',
  seenAt: at(seenSecond),
});

/** The taint `key`, that a relay found at that second. */
export const found = (key: string, seenSecond = 0, value?: string): SeenTaint => ({
  ...taint(key, seenSecond, value),
  known: 'found',
});

/** A pod bound at second 0 that tolerates the taint `a` for a minute. */
export const pod = (uid = 'u1', fields: Partial<PodFacts> = {}): PodFacts => ({
  uid: podUid(uid),
  namespace: 'default',
  name: `pod-${uid}`,
  podSince: at(0),
  tolerations: [tolerating('a', 60)],
  ...fields,
});

/** Version 1.`sequence`, observed at second `sequence`, of a node with the taint `a`. */
const facts = (sequence: number) => ({
  ref,
  version: { epoch: 1, sequence },
  observedAt: at(sequence),
  taints: [taint('a')],
});

export const nodeDelta = (sequence: number, fields: Partial<NodeDelta> = {}): NodeDelta => ({
  kind: 'node',
  ...facts(sequence),
  pods: [pod()],
  wake: false,
  ...fields,
});

export const podDelta = (sequence: number, fields: Partial<PodDelta> = {}): PodDelta => ({
  kind: 'pod',
  ...facts(sequence),
  pod: pod(),
  ...fields,
});

export const podGone = (sequence: number, fields: Partial<PodGoneDelta> = {}): PodGoneDelta => ({
  kind: 'pod-gone',
  ...facts(sequence),
  uid: podUid('u1'),
  ...fields,
});

export const emptyPartition: Partition = { ref, revision: 0, node: undefined, evictions: new Map() };

/** What a delta asks for that is heard when it was observed, unless the moment is another. */
export const planned = (partition: Partition, delta: Delta, moment: Partial<Moment> = {}): Plan =>
  plan(partition, delta, options, { now: delta.observedAt, ...moment });

/** The partition once a plan is committed. */
export function committed(partition: Partition, decided: Plan): Partition {
  const { node = partition.node, schedule, reschedule, confirm, cancel } = decided;
  const written = [...schedule, ...reschedule, ...confirm, ...cancel.map(({ record }) => record)];
  return {
    ref,
    revision: partition.revision + 1,
    node,
    evictions: new Map([...partition.evictions, ...written.map((record) => [record.uid, record] as const)]),
  };
}

/** The partition after these deltas, in this order. */
export function after(...deltas: readonly Delta[]): Partition {
  return deltas.reduce<Partition>(
    (partition, delta) => committed(partition, planned(partition, delta)),
    emptyPartition,
  );
}

export const recordIn = (partition: Partition, uid = 'u1'): EvictionRecord | undefined =>
  partition.evictions.get(podUid(uid));

/** The state of a pod's record and, when it is scheduled, the second at which it falls due. */
export function fate(partition: Partition, uid = 'u1'): string {
  const record = recordIn(partition, uid);
  if (!record) return 'none';
  return record.state === 'scheduled' ? `due at ${(record.fireAt - START) / 1000}` : record.state;
}

/** The partition with a record as `settle` leaves it. */
export function settled(partition: Partition, uid: string, state: 'done' | 'gone'): Partition {
  const record = recordIn(partition, uid);
  if (!record) throw new Error(`there is no record of ${uid}`);
  return { ...partition, evictions: new Map([...partition.evictions, [record.uid, { ...record, state }]]) };
}
