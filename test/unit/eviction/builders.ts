import type {
  Delta,
  NodeDelta,
  PodDelta,
  PodFacts,
  PodGoneDelta,
  SeenTaint,
} from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { type Plan, type PlanTime, type PodDecision, plan } from '#shared/eviction/plan.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import {
  type EndedPod,
  type EvictionRecord,
  ending,
  type FinalRecord,
  type Partition,
} from '#shared/eviction/records.ts';
import { ownMomentOf } from '#shared/eviction/retry.ts';
import { partitionOf } from '#shared/state/store.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The start time of tests, a whole second. Other times are in seconds after this time. */
const START = Date.UTC(2026, 0, 1);
export const at = (seconds: number) => START + seconds * 1000;

export const ref = { cluster: clusterName('c1'), node: nodeName('n1') };
/** The rules of a cluster in enforce mode, with defaults otherwise. */
export const rules: Rules = {
  policy: { ...DEFAULT_POLICY, mode: 'enforce' },
  ordersRevision: 1,
  policyRevision: 1,
  stops: [],
  holds: [],
  trips: [],
  guardRevision: 0,
  matching: { comparisonOperators: false },
};

/** Returns a toleration of `key` for `seconds`, or indefinitely without `seconds`. */
export const tolerating = (key: string, seconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: BigInt(seconds) }),
});

/** Returns the taint `key`, which a relay saw appear at that second. */
export const taint = (key: string, seenSecond = 0, value?: string): SeenTaint => ({
  key,
  ...(value === undefined ? {} : { value }),
  effect: 'NoExecute',
  known: 'added',
  seenAt: at(seenSecond),
});

/** Returns the taint `key`, which a relay found on the node at that second. */
export const found = (key: string, seenSecond = 0, value?: string): SeenTaint => ({
  ...taint(key, seenSecond, value),
  known: 'preexisting',
});

/** Returns a pod bound at second 0 that tolerates the taint `a` for 60 seconds. */
export const pod = (uid = 'u1', fields: Partial<PodFacts> = {}): PodFacts => ({
  uid: podUid(uid),
  namespace: 'default',
  name: `pod-${uid}`,
  podSince: at(0),
  tolerations: [tolerating('a', 60)],
  ...fields,
});

/** Returns version 1.`sequence` of a node with the taint `a`, observed at second `sequence`. */
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

export const emptyPartition: Partition = {
  ref,
  revision: 0,
  node: undefined,
  scheduled: new Map(),
  ended: new Map(),
};

/** A plan with its decisions grouped by kind, for assertions. */
export interface Planned extends Plan {
  readonly schedule: readonly EvictionRecord[];
  readonly reschedule: readonly EvictionRecord[];
  readonly confirm: readonly EvictionRecord[];
  readonly free: readonly EvictionRecord[];
  readonly cancel: readonly FinalRecord[];
  readonly elsewhere: readonly FinalRecord[];
  readonly canceledBefore: readonly EndedPod[];
  /** The distinct times that need a timer, earliest first. */
  readonly arm: readonly EpochMs[];
}

/** Returns the plan of a delta that is processed when it was observed, unless `moment` has another time. */
export function planned(
  partition: Partition,
  delta: Delta,
  moment: Partial<PlanTime> = {},
  governing: Rules = rules,
): Planned {
  const decided = plan(partition, delta, governing, { now: delta.observedAt, ...moment });
  const only = <Kind extends PodDecision['kind']>(kind: Kind) =>
    decided.decisions.filter((each): each is Extract<PodDecision, { kind: Kind }> => each.kind === kind);
  const records = (kind: 'schedule' | 'reschedule' | 'confirm' | 'free' | 'rearm') =>
    decided.decisions.flatMap((each) => (each.kind === kind && 'record' in each ? [each.record] : []));
  const armed = (['schedule', 'reschedule', 'confirm', 'free', 'rearm'] as const).flatMap(records);
  return {
    ...decided,
    schedule: records('schedule'),
    reschedule: records('reschedule'),
    confirm: records('confirm'),
    free: records('free'),
    cancel: only('cancel').map((each) => each.ending),
    elsewhere: only('evicted-elsewhere').map((each) => each.ending),
    canceledBefore: only('canceled-before').map((each) => each.ending),
    arm: [...new Set(armed.map(ownMomentOf))].sort((a, b) => a - b),
  };
}

/** Reports whether a plan leaves the partition unchanged. */
export const changesNothing = ({ node, ...decided }: Planned): boolean =>
  !node &&
  (['schedule', 'reschedule', 'confirm', 'free', 'cancel', 'elsewhere'] as const).every(
    (kind) => decided[kind].length === 0,
  );

/** Returns the partition after a plan is committed. */
export function committed(partition: Partition, decided: Planned): Partition {
  const { node = partition.node, schedule, reschedule, confirm, free, cancel, elsewhere } = decided;
  const records = [...partition.scheduled.values(), ...schedule, ...reschedule, ...confirm, ...free];
  return ended({ ...partition, revision: partition.revision + 1, node }, records, [...cancel, ...elsewhere]);
}

/** Returns the partition after these deltas, in this order. */
export function after(...deltas: readonly Delta[]): Partition {
  return deltas.reduce<Partition>(
    (partition, delta) => committed(partition, planned(partition, delta)),
    emptyPartition,
  );
}

export const recordIn = (partition: Partition, uid = 'u1'): EvictionRecord | undefined =>
  partition.scheduled.get(podUid(uid));

/** Returns the second at which a pod is due, or how its record ended. */
export function forecast(partition: Partition, uid = 'u1'): string {
  const record = recordIn(partition, uid);
  if (record) return `due at ${(record.dueAt - START) / 1000}`;
  return partition.ended.get(podUid(uid))?.outcome ?? 'none';
}

/** Returns the partition after a scheduled pod ended with this outcome. */
export function happened(partition: Partition, uid: string, outcome: 'evicted' | 'already-gone'): Partition {
  const record = recordIn(partition, uid);
  if (!record) throw new Error(`there is no record of ${uid}`);
  return ended(partition, [...partition.scheduled.values()], [ending(record, { outcome })]);
}

/** Returns the partition with these records, after some of them ended. */
function ended(
  partition: Partition,
  records: readonly EvictionRecord[],
  endings: readonly FinalRecord[],
): Partition {
  const uids = new Set(endings.map(({ uid }) => uid));
  return partitionOf(
    partition,
    records.filter(({ uid }) => !uids.has(uid)),
    [...partition.ended.values(), ...endings.map((each) => ({ ...each, endedAt: START }))],
  );
}
