import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { Relay } from '#functions/watch-relay/relay.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode } from './live-objects.ts';
import { OrderedQueue } from './ordered-queue.ts';
import { WatchedCluster } from './watched-cluster.ts';

const [C1, C2] = [clusterName('c1'), clusterName('c2')];

test('a relay follows many clusters, each until it is removed', async (context) => {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const store = new SqliteStore({ path: ':memory:' });
  const leases = new SqliteLeases({ database: store.database });
  const [nodes, pods] = [new OrderedQueue(), new OrderedQueue()];
  const log = recordingLog();
  const metrics = relayMetrics(new Registry());
  const clock = { now: Date.now };
  const outbox = new Outbox({ nodeDeltas: nodes, podDeltas: pods, clock, log, metrics });
  const relay = new Relay({ leases, store, outbox, clock, stopwatch: Date.now, log, metrics, holder: 'r1' });
  const cluster = (...keys: readonly string[]) => {
    const made = new WatchedCluster(Date.now);
    made.nodes.lists = [{ items: [liveNode('n1', ...keys)], resourceVersion: '1' }];
    return made;
  };

  const holderOf = async (name: ClusterName) => (await leases.look(name))?.holder;

  relay.add(C1, cluster('a'));
  relay.add(C2, cluster('b'));
  await time.pass(1000);
  assert.deepEqual(
    [...relay.states()],
    [
      [C1, 'synced'],
      [C2, 'synced'],
    ],
  );
  assert.deepEqual(
    nodes.taken.map(({ ref, taints }) => [ref.cluster, taints[0]?.key]),
    [
      [C1, 'a'],
      [C2, 'b'],
    ],
  );

  await relay.remove(C1);
  assert.deepEqual([...relay.states().keys()], [C2]);
  assert.deepEqual(await Promise.all([C1, C2].map(holderOf)), [undefined, 'r1']);

  await relay.remove(clusterName('unknown'));
  await relay.stop();
  assert.equal(await holderOf(C2), undefined);
});
