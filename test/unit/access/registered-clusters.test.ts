import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registeredClusters, UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { until } from '#test/cluster/rig/until.ts';
import { json, scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const START = 1_000_000;
const ONE = clusterName('one');
const TWO = clusterName('two');

const registered = (name = ONE, context = 'kind'): RegisteredCluster => ({
  name,
  access: { kind: 'local-context', context },
  addedAt: START,
});

/** Clusters of a registry that the test changes. `reads` counts reads of the registry, `made` counts connections. */
function fleet(host = '127.0.0.1:1') {
  const clock = new DrivenClock(START);
  const content = new Map([[ONE, registered()]]);
  const state = { reads: 0, made: 0, failing: false };
  const registry: Pick<ClusterRegistry, 'get'> = {
    get: async (name) => {
      state.reads += 1;
      if (state.failing) throw new StoreError('The table is gone.');
      return content.get(name);
    },
  };
  const connect = () => {
    state.made += 1;
    return { host, requestOptions: async () => ({ server: new URL(`http://${host}`), headers: {} }) };
  };
  return {
    clock,
    content,
    state,
    clusters: registeredClusters({ registry, connect, clock, installation: 'test' }),
  };
}

test("keeps a cluster's connections and rereads its registration after 20 s", async () => {
  const { clock, state, clusters } = fleet();
  const api = await clusters.api(ONE);
  await clock.advanceTo(START + 19_999);
  assert.equal(await clusters.api(ONE), api);
  assert.equal(state.reads, 1);
  await clock.advanceTo(START + 20_000);
  assert.equal(await clusters.api(ONE), api);
  assert.deepEqual(state, { reads: 2, made: 1, failing: false });
});

test('shares one registry read between concurrent callers', async () => {
  const { state, clusters } = fleet();
  const apis = await Promise.all(Array.from({ length: 10 }, () => clusters.api(ONE)));
  assert.equal(new Set(apis).size, 1);
  assert.deepEqual(state, { reads: 1, made: 1, failing: false });
});

test('rejects an unregistered cluster until it is registered', async () => {
  const { content, clusters } = fleet();
  await assert.rejects(clusters.api(TWO), (error: unknown) => {
    assert.ok(error instanceof UnknownClusterError);
    assert.match(error.message, /^cluster two is not registered\. .*taintward clusters add two/);
    return true;
  });
  content.set(TWO, registered(TWO));
  await clusters.api(TWO);
});

test('closes the old connections of a reregistered cluster', async (t) => {
  const { host } = await scriptedServer(t, json({ metadata: { name: 'n1' } }));
  const { clock, content, clusters } = fleet(host);
  const before = await clusters.api(ONE);
  await before.getNode(nodeName('n1'));
  content.set(ONE, registered(ONE, 'other'));
  await clock.advanceTo(START + 30_000);
  assert.notEqual(await clusters.api(ONE), before);
  await assert.rejects(before.getNode(nodeName('n1')), /its connections were closed/);
});

test('rejects a removed cluster within 30 s and closes its connections', async (t) => {
  const { host, connections } = await scriptedServer(t, json({ metadata: { name: 'n1' } }));
  const { clock, content, clusters } = fleet(host);
  await (await clusters.api(ONE)).getNode(nodeName('n1'));
  assert.equal(connections().open, 1);
  content.delete(ONE);
  await clock.advanceTo(START + 30_000);
  await assert.rejects(clusters.api(ONE), UnknownClusterError);
  await until('the connection closes', () => connections().open === 0);
});

test('uses the new access of a reregistered cluster within 30 s', async () => {
  const { clock, content, state, clusters } = fleet();
  const api = await clusters.api(ONE);
  content.set(ONE, registered(ONE, 'other'));
  await clock.advanceTo(START + 30_000);
  assert.notEqual(await clusters.api(ONE), api);
  assert.equal(state.made, 2);
});

test('closes the connections of an unused cluster while other clusters are used', async (t) => {
  const { host, connections } = await scriptedServer(t, json({ metadata: { name: 'n1' } }));
  const { clock, content, clusters } = fleet(host);
  content.set(TWO, registered(TWO));
  await (await clusters.api(ONE)).getNode(nodeName('n1'));
  await clock.advanceTo(START + 10 * 60_000);
  await clusters.api(TWO);
  await until('the connection closes', () => connections().open === 0);
});

test('rejects with the error of an unreadable registry and does not cache it', async () => {
  const { state, clusters } = fleet();
  state.failing = true;
  await assert.rejects(clusters.api(ONE), StoreError);
  state.failing = false;
  await clusters.api(ONE);
});
