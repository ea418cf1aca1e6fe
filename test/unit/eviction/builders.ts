import type {
  Delta,
  NodeDelta,
  PodDelta,
  PodFacts,
  PodGoneDelta,
  SeenTaint,
} from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { type Moment, type Plan, type PodDecision, plan } from '#shared/eviction/plan.ts';
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

/** When tests start; a whole second. Other moments are given in seconds after it. */
const START = Date.UTC(2026, 0, 1);
export const at = (seconds: number) => START + seconds * 1000;

export const ref = { cluster: clusterName('c1'), node: nodeName('n1') };
/** Of a cluster that is enforced, and of which nothing else is said. */
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

export const emptyPartition: Partition = {
  ref,
  revision: 0,
  node: undefined,
  scheduled: new Map(),
  ended: new Map(),
};

/** A plan, with its decisions by kind, as tests look at them. */
export interface Planned extends Plan {
  readonly schedule: readonly EvictionRecord[];
  readonly reschedule: readonly EvictionRecord[];
  readonly confirm: readonly EvictionRecord[];
  readonly free: readonly EvictionRecord[];
  readonly cancel: readonly FinalRecord[];
  readonly elsewhere: readonly FinalRecord[];
  readonly cancelledBefore: readonly EndedPod[];
  /** Distinct moments that want a timer, soonest first. */
  readonly arm: readonly EpochMs[];
}

/** What a delta asks for that is heard when it was observed, unless the moment is another. */
export function planned(
  partition: Partition,
  delta: Delta,
  moment: Partial<Moment> = {},
  governing: Rules = rules,
): Planned {
  const decided = plan(partition, delta, governing, { now: delta.observedAt, ...moment });
  const of = <Kind extends PodDecision['kind']>(kind: Kind) =>
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
    cancel: of('cancel').map((each) => each.ending),
    elsewhere: of('evicted-elsewhere').map((each) => each.ending),
    cancelledBefore: of('cancelled-before').map((each) => each.ending),
    arm: [...new Set(armed.map(ownMomentOf))].sort((a, b) => a - b),
  };
}

/** Whether a plan leaves the partition as it is. */
export const changesNothing = ({ node, ...decided }: Planned): boolean =>
  !node &&
  (['schedule', 'reschedule', 'confirm', 'free', 'cancel', 'elsewhere'] as const).every(
    (kind) => decided[kind].length === 0,
  );

/** The partition once a plan is committed. */
export function committed(partition: Partition, decided: Planned): Partition {
  const { node = partition.node, schedule, reschedule, confirm, free, cancel, elsewhere } = decided;
  const records = [...partition.scheduled.values(), ...schedule, ...reschedule, ...confirm, ...free];
  return ended({ ...partition, revision: partition.revision + 1, node }, records, [...cancel, ...elsewhere]);
}

/** The partition after these deltas, in this order. */
export function after(...deltas: readonly Delta[]): Partition {
  return deltas.reduce<Partition>(
    (partition, delta) => committed(partition, planned(partition, delta)),
    emptyPartition,
  );
}

export const recordIn = (partition: Partition, uid = 'u1'): EvictionRecord | undefined =>
  partition.scheduled.get(podUid(uid));

/** The second at which a pod falls due, or how its record ended. */
export function forecast(partition: Partition, uid = 'u1'): string {
  const record = recordIn(partition, uid);
  if (record) return `due at ${(record.fireAt - START) / 1000}`;
  return partition.ended.get(podUid(uid))?.outcome ?? 'none';
}

/** The partition once this has happened to a scheduled pod. */
export function happened(partition: Partition, uid: string, outcome: 'done' | 'gone'): Partition {
  const record = recordIn(partition, uid);
  if (!record) throw new Error(`there is no record of ${uid}`);
  return ended(partition, [...partition.scheduled.values()], [ending(record, { outcome })]);
}

/** The partition with these records, once some of them have ended. */
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
