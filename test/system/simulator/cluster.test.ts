import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { podUid } from '#shared/eviction/identity.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { missingPermissions, NEEDED_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Child } from '#test/world/child.ts';
import { loadContexts } from '#test/world/load-contexts.ts';

const DOOMED_CLUSTER = fileURLToPath(new URL('./doomed-cluster.ts', import.meta.url));
/** 6 of web, 4 of checkout, 2 of db, one of logs on each of 4 nodes. */
const POD_COUNT = 16;

let dir: string;
let cluster: SimulatedCluster;

const start = () => startSimulatedCluster({ clock: systemClock, dir });

const allScheduled = () =>
  until('all pods have a node', () => {
    const pods = cluster.pods();
    return pods.length === POD_COUNT && pods.every(({ node }) => node !== undefined) && pods;
  });

function connect(): RestApi {
  const [context] = loadContexts({ kubeconfig: cluster.kubeconfig, contexts: [cluster.context] });
  assert.ok(context);
  return new RestApi(context.connection);
}

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'simulated-cluster-'));
  cluster = await start();
});
afterEach(async () => {
  await cluster.close();
  rmSync(dir, { recursive: true });
});

describe('the simulated cluster', () => {
  test('has four nodes, and pods of four workloads on them', async () => {
    assert.deepEqual(
      cluster.nodes().map(({ name }) => name),
      ['node-1', 'node-2', 'node-3', 'node-4'],
    );
    const pods = await allScheduled();
    const workloads = Map.groupBy(pods, ({ name }) => name.split('-')[0]);
    assert.deepEqual([...workloads].map(([name, { length }]) => `${name} ${length}`).sort(), [
      'checkout 4',
      'db 2',
      'logs 4',
      'web 6',
    ]);
    for (const node of cluster.nodes()) {
      assert.ok(pods.filter((pod) => pod.node === node.name).length >= 3, `pods on ${node.name}`);
    }
    assert.equal(pods.find(({ name }) => name === 'db-0')?.node, 'node-1');
  });

  test('supports tainting and untainting its nodes as with kubectl', () => {
    const taints = () => cluster.nodes()[0]?.taints;
    cluster.taint('node-1', 'maintenance=now:NoExecute');
    cluster.taint('node-1', 'maintenance=now:NoExecute');
    cluster.taint('node-1', 'gpu:NoSchedule');
    assert.deepEqual(taints(), ['maintenance=now:NoExecute', 'gpu:NoSchedule']);
    cluster.taint('node-1', 'maintenance=later:NoExecute');
    cluster.untaint('node-1', 'gpu');
    assert.deepEqual(taints(), ['maintenance=later:NoExecute']);
    cluster.untaint('node-1', 'maintenance:NoExecute-');
    assert.deepEqual(taints(), []);
  });

  test('explains an invalid taint or node', () => {
    assert.throws(() => cluster.taint('node-9', 'a:NoExecute'), {
      message: 'Node "node-9" not found. Specify one of: node-1, node-2, node-3, node-4',
    });
    assert.throws(() => cluster.taint('node-1', 'a:NoRun'), /\beffect\b.*NoExecute/);
    assert.throws(() => cluster.untaint('node-1', 'a'), /taint "a"/);
  });

  test('keeps its kubeconfig and its state private', () => {
    const dir = dirname(cluster.kubeconfig);
    assert.equal(statSync(dir).mode & 0o077, 0);
    for (const name of readdirSync(dir)) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
  });
});

describe("the simulated cluster's API", () => {
  let api: RestApi;
  beforeEach(() => {
    api = connect();
  });
  afterEach(() => api.close());

  test('grants the permissions that the preflight requires', async () => {
    assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), []);
  });

  test('supports lists and watches', async () => {
    const { signal } = new AbortController();
    const first = await api.nodes.list({ limit: 3, signal });
    assert.deepEqual(
      first.items.map(({ name }) => name),
      ['node-1', 'node-2', 'node-3'],
    );
    assert.ok(first.continue);
    const last = await api.nodes.list({ limit: 3, continue: first.continue, signal });
    assert.equal(last.items.length, 1);
    const { resourceVersion } = last;
    cluster.taint('node-2', 'maintenance=now:NoExecute');
    const events: WatchEvent<LiveNode>[] = [];
    for await (const event of api.nodes.watch({ resourceVersion, timeoutSeconds: 1, signal }))
      events.push(event);
    const [change, bookmark] = events;
    assert.ok(change?.kind === 'upsert' && bookmark?.kind === 'bookmark');
    assert.equal(change.object.name, 'node-2');
    assert.deepEqual(change.object.taints, [{ key: 'maintenance', value: 'now', effect: 'NoExecute' }]);
  });

  test('marks and deletes a pod, but no other of the same name', async () => {
    await allScheduled();
    const pod = { namespace: 'default', name: 'db-0' };
    const live = await api.getPod(pod);
    assert.ok(live?.node);
    assert.ok((await api.podsOnNode(live.node, [live])).some(({ uid }) => uid === live.uid));
    const stranger = podUid('00000000-0000-4000-8000-000000000000');
    const isGone = (error: unknown) => error instanceof ApiError && error.status === 409;
    await assert.rejects(api.markDisrupted(live, stranger, Date.now()), isGone);
    await assert.rejects(api.deletePod(pod, { uid: stranger }), isGone);
    await api.markDisrupted(live, live.uid, Date.now());
    assert.equal((await api.getPod(pod))?.disrupted, true);
    await api.deletePod(pod, { uid: live.uid });
    assert.equal((await api.getPod(pod))?.terminating, true);
    const again = await until('db-0 comes back as another pod', () => {
      const present = cluster.pods().find(({ name }) => name === 'db-0');
      return present !== undefined && present.uid !== live.uid && present;
    });
    assert.equal(again.namespace, 'default');
  });
});

describe('a restart', () => {
  const identities = () => cluster.pods().map(({ name, uid, node }) => `${name} ${uid} ${node}`);

  test('keeps the same nodes, taints, and pods', async () => {
    await allScheduled();
    cluster.taint('node-3', 'gpu:NoSchedule');
    const before = identities();
    await cluster.close();
    cluster = await start();
    assert.deepEqual(identities(), before);
    assert.deepEqual(cluster.nodes()[2]?.taints, ['gpu:NoSchedule']);
  });

  test('loses nothing that was reported, after kill -9', async () => {
    await allScheduled();
    const before = identities();
    await cluster.close();
    const doomed = new Child(process.execPath, [DOOMED_CLUSTER, dir]);
    await doomed.out.first((line) => line);
    await doomed.kill();
    cluster = await start();
    assert.deepEqual(cluster.nodes()[0]?.taints, ['maintenance=now:NoExecute']);
    assert.deepEqual(identities(), before);
  });
});
