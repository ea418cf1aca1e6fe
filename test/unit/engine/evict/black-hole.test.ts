import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Evictions } from '#functions/service/evictions.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { EVICTION_RETRIES, POD_DELETION_DURATION } from '#shared/telemetry/metrics.ts';
import { systemClock, systemStopwatch } from '#shared/time/clock.ts';
import { aNode, aRecord, aTaint, NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { json, scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const HOLE = clusterName('hole');
const HEALTHY = clusterName('healthy');
const TAINT = { key: 'now', effect: 'NoExecute' } as const;
const HOLE_NODES = 200;
const HEALTHY_NODES = 20;
/** Milliseconds of real time, for a test that never completes. */
const TIMEOUT_MS = 120_000;

/** Starts an API server that accepts connections and never answers. */
async function blackHole(t: TestContext) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(end);
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const connection: Connection = {
    host: url.host,
    requestOptions: async () => ({ server: url, headers: {} }),
  };
  return { connection, connected: () => sockets.size, end };
}

/** Starts a cluster with tainted nodes, each with a due pod. */
async function healthyCluster(t: TestContext) {
  const nodes = Array.from({ length: HEALTHY_NODES }, (_, index) => nodeName(`n${index}`));
  const podOf = (node: string) => ({
    metadata: {
      uid: `uid-${node}`,
      namespace: 'default',
      name: `pod-${node}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { nodeName: node },
    status: {},
  });
  const { connection } = await scriptedServer(t, (response, request) => {
    // By default, Node would send the time of the machine.
    response.setHeader('date', new Date().toUTCString());
    const [, node = ''] = /(?:nodes\/|pod-|spec\.nodeName%3D)(n\d+)/.exec(request.url) ?? [];
    if (request.url.startsWith('/version')) json({ major: '1', minor: '36' })(response, request);
    else if (/\/nodes\//.test(request.url)) {
      json({ metadata: { name: node, resourceVersion: '1' }, spec: { taints: [TAINT] } })(response, request);
    } else if (/\/pods\?/.test(request.url)) {
      json({ metadata: { resourceVersion: '1' }, items: [podOf(node)] })(response, request);
    } else json(podOf(node))(response, request);
  });
  const due = nodes.map((node) => ({
    ref: { cluster: HEALTHY, node },
    pod: { uid: podUid(`uid-${node}`), namespace: 'default', name: `pod-${node}` },
  }));
  return { connection, due };
}

test('evicts the pods of a healthy cluster immediately beside 200 nodes of a cluster that never answers', {
  timeout: TIMEOUT_MS,
}, async (t) => {
  // Time stands still, so that no call times out on a slow machine.
  const time = driveTimers(t, NOW);
  const hole = await blackHole(t);
  const healthy = await healthyCluster(t);
  const store = new SqliteStore({ path: ':memory:' });
  t.after(() => store.close());
  const schedule = (ref: NodeRef, fields: Partial<EvictionRecord>) =>
    store.commit(
      ref,
      0,
      {
        node: aNode({ taints: [aTaint({ key: 'now', since: NOW - 2_000 })], observedAt: NOW }),
        schedule: [aRecord({ podSince: NOW - 60_000, dueAt: NOW, ...fields })],
        end: [],
        live: true,
      },
      NOW,
    );
  const lost = Array.from(
    { length: HOLE_NODES },
    (_, index): NodeRef => ({
      cluster: HOLE,
      node: nodeName(`n${index}`),
    }),
  );
  for (const ref of lost) await schedule(ref, {});
  for (const { ref, pod } of healthy.due) await schedule(ref, pod);

  const log = recordingLog();
  const delayMs: number[] = [];
  let retried = 0;
  const apis = new Map([
    [HOLE, new RestApi(hole.connection)],
    [HEALTHY, new RestApi(healthy.connection)],
  ]);
  t.after(() => apis.forEach((api) => void api.close()));
  const deps: EvictDeps = {
    store,
    clock: systemClock,
    log,
    rules: async () => rules,
    timers: { arm: async () => undefined },
    clusters: { api: async (name) => apis.get(name) ?? assert.fail(name) },
    permits: new EmbeddedPermits(systemStopwatch, objectPermits(new FakeObjects())),
    metrics: {
      put: (name, value) => {
        if (name === POD_DELETION_DURATION) delayMs.push(value * 1000);
        if (name === EVICTION_RETRIES) retried += value;
      },
    },
  };
  const evictions = new Evictions({
    process: async (ref) => {
      const again = await evictNode(ref, deps);
      assert.equal(again, undefined);
      return undefined;
    },
    tryAgain: async () => undefined,
    clock: systemClock,
    log,
  });

  // The unreachable nodes come first.
  for (const ref of [...lost, ...healthy.due.map((due) => due.ref)]) await evictions.arm(ref, [NOW]);
  while (delayMs.length < HEALTHY_NODES) await time.settle();
  assert.deepEqual(new Set(delayMs), new Set([0]));
  // The pods did not wait for the unreachable nodes, which all wait for an answer.
  assert.equal(retried, 0);

  // Unreachable nodes are retried by their own timers, and no node keeps its slot.
  for (let calls = 0; evictions.size > 0; calls++) {
    assert.ok(calls < HOLE_NODES);
    await time.pass(CALL_TIMEOUT_MS);
  }
  assert.equal(retried, HOLE_NODES);
  const partitions = await Promise.all(lost.map((ref) => store.load(ref, Date.now())));
  assert.ok(partitions.every(({ node, scheduled }) => node?.outage && scheduled.size === 1));
  await evictions.stop();
});
