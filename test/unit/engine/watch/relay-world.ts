import type { TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ClusterRelay, type ClusterRelayDeps } from '#shared/engine/watch/cluster-relay.ts';
import { Fleet } from '#shared/engine/watch/fleet.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type RecordingLog, recordingLog } from '#test/contracts/recording-log.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { PROVEN } from '#test/world/proven.ts';
import { ScriptedGuardStore } from '#test/world/scripted-guard-store.ts';
import { OrderedQueue } from '../../aws/relay/ordered-queue.ts';
import { liveNode, livePod } from './live-objects.ts';
import { listOf } from './scripted-resource.ts';
import { WatchedCluster } from './watched-cluster.ts';

export const SECOND = 1000;
export const CLUSTER = clusterName('c1');

/** Returns whether each sent delta wakes its node. */
export const wakesOf = ({ taken }: OrderedQueue) => taken.map((delta) => delta.kind === 'node' && delta.wake);

export const throwing = (error: Error) => (): never => {
  throw error;
};

/** Returns a cluster with a pod on a tainted node. */
export function taintedCluster(): WatchedCluster {
  const cluster = new WatchedCluster(Date.now);
  cluster.nodes.lists = [listOf(liveNode('n1', 'a'))];
  cluster.pods.lists = [listOf(livePod())];
  return cluster;
}

/** Returns the state of an installation in SQLite. */
export function inSqlite() {
  const store = new SqliteStore({ path: ':memory:' });
  const { database } = store;
  return { store, leases: sqliteLeases(database), history: new SqliteHistory({ database }) };
}

/** Returns the state of an installation in DynamoDB. */
export function inDynamoDb() {
  const fake = new FakeDynamoDb({ now: Date.now });
  const table = new DynamoDbTable({ client: fakeClient(async (c) => fake.perform(c)), tableName: 't' });
  return {
    store: new DynamoDbStore(table),
    leases: new DynamoDbLeases(table),
    history: new DynamoDbHistory(table),
  };
}

type Kept = 'store' | 'leases' | 'history' | 'rules';
type Given = Pick<ClusterRelayDeps, Kept> &
  Partial<Omit<ClusterRelayDeps, Kept | 'log' | 'outbox'>> & {
    readonly name?: ClusterName;
    readonly log?: RecordingLog;
    readonly nodes?: OrderedQueue;
    readonly pods?: OrderedQueue;
  };

/** Returns the relay of a cluster in a process of its own, which is stopped at the end of the test. */
export function clusterRelay(context: TestContext, cluster: KubernetesApi, given: Given) {
  const {
    name = CLUSTER,
    log = recordingLog(),
    nodes = new OrderedQueue(),
    pods = new OrderedQueue(),
  } = given;
  const { clock = { now: Date.now }, holder = 'r1', metrics = relayMetrics(new Registry()) } = given;
  const outbox = new DeltaSender({ nodeDeltas: nodes, podDeltas: pods, clock, log, metrics });
  const rulesStore = new ScriptedGuardStore();
  const relay = new ClusterRelay(name, cluster, {
    rulesStore,
    prover: PROVEN,
    limits: new PodFollowLimits(),
    fleet: new Fleet({ holder, budget: Infinity, stopwatch: Date.now }),
    ...given,
    clock,
    holder,
    metrics,
    log,
    outbox,
  });
  const stop = async () => {
    outbox.stop();
    await relay.stop();
  };
  context.after(stop);
  const events = () => log.lines.map(({ event }) => event);
  return { relay, rulesStore, nodes, pods, log, events, metrics, stop };
}
