import type { ReportedProgress } from '#shared/eviction/guard.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import { DEFAULT_POLICY, type Policy, type Stop } from '#shared/eviction/policy.ts';
import { type EvictionRecord, ending, type NodeState } from '#shared/eviction/records.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { parseChangedItem, parseGoneItem } from '#shared/state/dynamodb/history-items.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { History } from '#shared/state/history.ts';
import type { Lease, LeaseRecord, Leases } from '#shared/state/lease.ts';
import type { Permits } from '#shared/state/permits.ts';
import { policyText } from '#shared/state/policy-document.ts';
import type { StoredProofs } from '#shared/state/proofs.ts';
import type { Access, RegisteredCluster } from '#shared/state/registry.ts';
import type { AuditEntry, GuardState, OperatorControls, RulesStore } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import { waitingPods } from '#test/contracts/permits-contract.ts';
import { CLUSTER, FIRST, FOURTH, NOW, REF, SECOND, THIRD } from './messages.ts';

const version = { epoch: 1_795_000_000, sequence: 7 };

const causes = [
  {
    taint: { key: 'maintenance', value: 'planned', effect: 'NoExecute' },
    since: NOW - 1_000,
    known: 'added',
    toleration: 2,
    seconds: 300,
    policy: 'tolerationSeconds',
  },
] as const;

const NODE: NodeState = {
  taints: [
    {
      key: 'maintenance',
      value: 'planned',
      effect: 'NoExecute',
      known: 'added',
      since: NOW - 1_000,
      timeAdded: NOW - 1_000,
    },
    {
      key: 'node.kubernetes.io/unreachable',
      effect: 'NoSchedule',
      virtual: true,
      known: 'preexisting',
      since: NOW,
    },
  ],
  version,
  observedAt: NOW,
  podsVersion: version,
  deletedAt: NOW - 500,
  taintsStamp: 'kubectl@2026-11-22T11:59:59Z',
  guardRevision: 3,
  retry: { attempts: 2, nextTryAt: NOW + 10_000, since: NOW - 10_000, error: 'refused', everything: true },
  outage: {
    attempts: 3,
    nextTryAt: NOW + 20_000,
    since: NOW - 20_000,
    error: 'silent',
    everything: true,
    triedAt: NOW - 5_000,
  },
  blocked: { attempts: 2, nextTryAt: NOW + 5_000 },
} satisfies Required<NodeState>;

const plain: EvictionRecord = {
  uid: FIRST,
  namespace: 'default',
  name: 'web-0',
  podSince: NOW - 60_000,
  startedAt: NOW - 1_000,
  dueAt: NOW + 300_000,
  causes,
  version,
};
const gate = {
  kind: 'guard',
  scope: 'zone',
  trippedAt: NOW - 2_000,
  revision: 1,
  guardRevision: 3,
  until: NOW + 60_000,
} as const;
const busy: Required<EvictionRecord> = {
  ...plain,
  uid: SECOND,
  name: 'web-1',
  owner: { kind: 'StatefulSet', name: 'web' },
  failure: { since: NOW - 5_000, error: 'a webhook refused' },
  gaveUpAt: NOW - 1,
  held: { by: gate, since: NOW - 2_000, until: NOW + 60_000 },
  blocked: { since: NOW - 3_000, nextTryAt: NOW + 5_000, reason: 'the budget web' },
  notBefore: NOW + 6_000,
  turnAt: NOW + 7_000,
  recreated: true,
  drains: true,
};
const ended = ending(
  { ...plain, uid: THIRD, name: 'web-2' },
  { outcome: 'already-gone', delayMs: 12, error: 'late', deleted: { at: NOW - 100, by: 'other' } },
);
const canceled = ending(
  { ...plain, uid: FOURTH, name: 'web-3' },
  { outcome: 'canceled', cancelReason: 'taint-removed' },
);

const ofPod = { uid: FIRST, namespace: 'default', name: 'web-0', dueAt: NOW + 300_000, causes };
const NOTED: readonly Noted[] = [
  { ...ofPod, event: 'rescheduled', from: { dueAt: NOW + 1_000, causes } },
  { ...ofPod, uid: SECOND, name: 'web-1', event: 'held', by: gate },
  { ...ofPod, uid: THIRD, name: 'web-2', event: 'blocked', error: 'the budget web' },
];
const GONE = [
  { uid: FIRST, at: NOW - 10 },
  { uid: podUid('of-a-static-pod'), at: NOW - 5 },
];

const ACCESSES: Readonly<Record<string, Access>> = {
  prod: {
    kind: 'eks',
    clusterName: 'production',
    region: 'eu-west-1',
    role: { arn: 'arn:aws:iam::210987654321:role/taintward-access', externalId: 'x' },
  },
  secret: {
    kind: 'kubeconfig-secret',
    secretArn: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward/edge',
    context: 'edge',
  },
  local: { kind: 'local-context', kubeconfig: '/home/anna/.kube/config', context: 'kind' },
};
const REGISTERED: readonly RegisteredCluster<Access>[] = Object.entries(ACCESSES)
  .map(([name, access]) => ({ name: clusterName(name), access, addedAt: NOW }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

const BID = { holder: 'relay-2', load: 120 };
const STUCK: readonly StuckPod[] = [
  {
    node: REF.node,
    uid: FIRST,
    namespace: 'default',
    name: 'web-0',
    gracePeriodEndedAt: NOW - 90_000,
    finalizers: ['example.com/volume'],
    nodeState: 'unreachable',
  },
];

const act = { actor: 'arn:aws:iam::123456789012:user/anna', at: NOW, reason: 'drill' };
const clusterStop: Stop = { ...act, scope: 'cluster', id: 's1', until: NOW + 3_600_000 };
const fleetStop: Stop = { ...act, scope: 'fleet' };
export const POLICY: Required<Policy> = {
  ...DEFAULT_POLICY,
  mode: 'enforce',
  evictionRate: 5,
  maxEvictionsPerWorkload: { count: '10%', windowMs: 600_000 },
  requireExpiredLease: false,
  include: [{ namespaces: ['shop'] }],
  exclude: [
    {
      namespaces: ['kube-system'],
      labels: {
        matchLabels: { app: 'db' },
        matchExpressions: [{ key: 'tier', operator: 'In', values: ['gold'] }],
      },
      taints: ['maintenance'],
      until: NOW + 3_600_000,
    },
  ],
  method: { kind: 'evict', timeoutMs: 900_000, onTimeout: 'fail' },
  tolerationSecondsOverrides: { maintenance: 300 },
  treatAsNoExecute: ['node.kubernetes.io/unreachable'],
};
const ORDERS: Omit<OperatorControls, 'revision'> = {
  policy: { text: policyText(POLICY), read: POLICY, revision: 1, owner: '/etc/policy.yaml' },
  stops: [clusterStop],
  holds: [
    {
      ...act,
      id: 'h1',
      until: NOW + 3_600_000,
      target: { kind: 'pod', namespace: 'default', name: 'web-0', uid: FIRST },
    },
    {
      ...act,
      id: 'h2',
      target: { kind: 'workload', namespace: 'default', owner: { kind: 'Deployment', name: 'web' } },
    },
    { ...act, id: 'h3', target: { kind: 'node', node: REF.node } },
    { ...act, id: 'h4', target: { kind: 'namespace', namespace: 'default' } },
    {
      ...act,
      id: 'h5',
      target: {
        kind: 'labels',
        namespace: 'default',
        labels: { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
      },
    },
    { ...act, id: 'h6', target: { kind: 'zone', zone: 'a' } },
  ],
};
const active = { scope: 'zone', zone: 'a', trippedAt: NOW - 2_000, nodes: 3, outOf: 4 } as const;
const released = { scope: 'cluster', trippedAt: NOW - 9_000, nodes: 5, outOf: 9, upTo: 6 } as const;
const fresh = { scope: 'customTaints', trippedAt: NOW - 8_000, nodes: 5, outOf: 9, releasedAt: NOW } as const;
const GUARD: GuardState = { revision: 1, trips: [active], released: [released, fresh] };
const ofCluster = { actor: act.actor, at: NOW, cluster: CLUSTER };
const AUDIT: readonly AuditEntry[] = [
  { actor: act.actor, at: NOW + 2, kind: 'stop', message: 'stopped all clusters', reason: 'drill' },
  { ...ofCluster, at: NOW + 1, actor: 'relay-1', kind: 'guard-tripped', message: 'holds zone a' },
  {
    ...ofCluster,
    kind: 'policy',
    message: 'applied a policy',
    reason: 'drill',
    policy: {
      revision: 2,
      text: 'mode: enforce\n',
      settings: [{ setting: 'mode', now: 'observe', next: 'enforce' }],
    },
  },
];

/** The parts that store all persistent state, in any deployment. */
export interface Keepers {
  readonly store: Store;
  readonly history: Pick<History, 'noteGone'>;
  readonly leases: Leases;
  readonly rulesStore: RulesStore;
  readonly permits: Permits;
}

const inTable = (table: DynamoDbTable): Keepers => ({
  store: new DynamoDbStore(table),
  history: new DynamoDbHistory(table),
  leases: new DynamoDbLeases(table, { sender: SENDER }),
  rulesStore: new DynamoDbRulesStore(table),
  permits: dynamoDbPermits(table),
});

const RATE = { evictionRate: 1, releaseRate: 1 };
const OF_WORKLOAD = { workload: 'default/Deployment/web', count: 1, windowMs: 60_000 };
const SENDER = 'AROARELAY';
const PROOFS: StoredProofs = {
  passes: 1,
  probe: { sentAt: NOW - 2_000, failure: 'The API server is silent.' },
};

/** Writes an item of each kind to a table, with all optional fields, as the current code does. */
export async function writeAll(table: DynamoDbTable): Promise<void> {
  await writeKept(inTable(table));
  const registry = new DynamoDbClusterRegistry(table);
  for (const cluster of REGISTERED) await registry.add(cluster);
  const proofs = dynamoDbProofs(table);
  const { sentAt, failure } = PROOFS.probe ?? {};
  await proofs.notedProbe(CLUSTER, sentAt ?? 0, NOW, failure);
  await proofs.notedPass(CLUSTER, NOW);
  await proofs.notedDelta(CLUSTER, NOW - 3_000, NOW);
}

/** Writes the state that every deployment stores. */
export async function writeKept({ store, history, leases, rulesStore, permits }: Keepers): Promise<void> {
  await store.commit(
    REF,
    0,
    { node: NODE, schedule: [plain, busy], end: [ended, canceled], noted: NOTED, live: true },
    NOW,
  );
  await history.noteGone(CLUSTER, GONE);
  await permits.take(CLUSTER, waitingPods(5), RATE, NOW);
  await permits.take(CLUSTER, waitingPods(1, { uid: FIRST }), OF_WORKLOAD, NOW);
  const lease = (await leases.take(CLUSTER, undefined, 'relay-1', NOW)) as Lease;
  await leases.renew(lease, {
    renewedAt: NOW + 3_000,
    lastContactAt: NOW + 2_000,
    nodes: 20,
    breakerOpen: true,
    faults: FAULTS,
    tripProgress: TRIP_PROGRESS,
  });
  const uids = { system: 'system-1', nodes: ['node-uid-1'] };
  await leases.renew(lease, { renewedAt: NOW + 3_000, claim: { uids } });
  await leases.bid(lease, BID);
  await leases.reportStuck(lease, STUCK);
  const [ofFleet, ofGuard, ofPolicy] = AUDIT;
  if (!ofFleet || !ofGuard || !ofPolicy) throw new Error('the audit has three entries');
  const resumedFrom = { fleetRevision: 1, stoppedAt: fleetStop.at - 1 };
  await rulesStore.changeOrders(
    CLUSTER,
    { revision: 0, stops: [], holds: [] },
    { ...ORDERS, resumedFrom },
    ofPolicy,
  );
  await rulesStore.changeGuard(CLUSTER, { revision: 0, trips: [] }, [active, released, fresh], ofGuard);
  await rulesStore.changeFleetStop(undefined, fleetStop, ofFleet);
}

/** Additional content. It is absent in releases that did not write it. */
export interface ReportedFaults {
  readonly faults: readonly Fault[] | undefined;
}

/** Faults that a lease's holder reports. They are absent in releases that did not write them. */
export const FAULTS: readonly Fault[] = [
  {
    type: 'list-failing',
    since: NOW - 1_000,
    error: 'Cannot list pods: 403.',
    resource: 'pods',
    status: 403,
  },
  { type: 'built-in-evicts', since: NOW - 2_000, error: 'They were held.', count: 8 },
];

/** Progress of trips that a lease's holder reports. */
const TRIP_PROGRESS: readonly ReportedProgress[] = [
  { scope: 'zone', zone: 'a', trippedAt: NOW, affectedNow: 1, resetsBelow: 3, resetsAt: NOW + 60_000 },
];

const LEASE: LeaseRecord = {
  cluster: CLUSTER,
  holder: 'relay-1',
  epoch: Math.floor(NOW / 1000),
  renewals: 1,
  renewedAt: NOW + 3_000,
  lastContactAt: NOW + 2_000,
  nodes: 20,
  breakerOpen: true,
  tripProgress: TRIP_PROGRESS,
  bid: BID,
};

/** The meaning of the state that every deployment stores. */
export const KEPT_MEANING = {
  node: NODE,
  scheduled: [plain, busy],
  ended: [
    { ...ended, endedAt: NOW },
    { ...canceled, endedAt: NOW },
  ],
  tainted: [{ node: REF.node, state: NODE }],
  lease: LEASE,
  stuck: STUCK,
  storedRules: { orders: { revision: 1, ...ORDERS }, guard: GUARD, fleetStop, fleetRevision: 1 },
  audit: AUDIT,
  /** Five pods come before, one per second. */
  nextTurn: NOW + 5_000,
  /** A permit lasts 10 s, and then counts for the window. */
  nextOfWorkload: NOW + 70_000,
};

/** The meaning of additional history. */
export const HISTORY_MEANING = { noted: NOTED, gone: GONE };

/** The meaning of a table's items. */
export const MEANING = {
  ...KEPT_MEANING,
  ...HISTORY_MEANING,
  registered: REGISTERED,
  proofs: PROOFS,
  tracedAt: NOW - 3_000,
  senders: [SENDER],
};

/** Returns the content that the current code reads from a table. */
export async function readAll(table: DynamoDbTable): Promise<typeof MEANING & ReportedFaults> {
  const items = await Array.fromAsync(table.query(`${CLUSTER}#${REF.node}`, 'A'));
  const changed = items.filter(({ sk }) => String(sk).startsWith('CHANGED#'));
  const gone = await Array.fromAsync(table.query(`LEASE#${CLUSTER}`, 'GONE#', 'GONE$'));
  const proofs = dynamoDbProofs(table);
  const { faults, senders } = (await new DynamoDbLeases(table).read(CLUSTER)) ?? {};
  return {
    ...(await readKept(inTable(table))),
    noted: changed.flatMap(parseChangedItem),
    gone: gone.flatMap(parseGoneItem),
    registered: (await new DynamoDbClusterRegistry(table).list()).clusters as typeof REGISTERED,
    proofs: await proofs.read(CLUSTER),
    tracedAt: (await proofs.tracedAt(CLUSTER)) ?? 0,
    senders: [...(senders ?? [])],
    faults,
  };
}

/** Returns the content that the current code reads of the state that every deployment stores. */
export async function readKept({
  store,
  leases,
  rulesStore,
  permits,
}: Keepers): Promise<typeof KEPT_MEANING> {
  const { node, scheduled, ended: over } = await store.load(REF, NOW);
  if (!node) throw new Error('there is no node');
  const found = await leases.read(CLUSTER);
  if (!found) throw new Error('there is no lease');
  // The next holder writes its own version, faults, claim, and senders.
  const { version: _version, faults: _faults, uids: _uids, senders: _senders, ...lease } = found;
  const [turn] = await permits.take(CLUSTER, waitingPods(1), RATE, NOW);
  const [ofWorkload] = await permits.take(CLUSTER, waitingPods(1), OF_WORKLOAD, NOW);
  const { fleetStop: stop, ...storedRules } = await rulesStore.read(CLUSTER);
  // The first release resumed no cluster alone.
  const { resumedFrom: _resumedFrom, ...orders } = storedRules.orders;
  if (!stop) throw new Error('nothing is stopped');
  return {
    node,
    scheduled: [...scheduled.values()],
    ended: [...over.values()],
    tainted: await Array.fromAsync(store.taintedNodes(CLUSTER)),
    lease,
    stuck: await leases.stuck(CLUSTER),
    storedRules: { ...storedRules, orders, fleetStop: stop } as typeof MEANING.storedRules,
    audit: await rulesStore.audit({ from: 0, to: Number.POSITIVE_INFINITY }),
    nextTurn: turn?.turnAt ?? 0,
    nextOfWorkload: ofWorkload?.notBefore ?? 0,
  };
}
