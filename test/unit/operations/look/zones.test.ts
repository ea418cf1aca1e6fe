import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { type Snapshot, view } from '#shared/operations/look/look.ts';
import { statusOf } from '#shared/operations/look/status.ts';
import { aNode, aReason, aRecord, aTaint, NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';

const PROD = clusterName('prod');
const KEY = 'node.kubernetes.io/unreachable';
const OUT = { metadata: { name: 'out', labels: { 'topology.kubernetes.io/zone': 'z1' } } };

/** A cluster whose guard tripped for a zone, with a pod on a node of this zone and on another node, due in a minute. */
async function tripped(t: TestContext) {
  const clock = new DrivenClock(NOW);
  const state = { reads: 0, isDown: false };
  const cluster = async () => {
    state.reads += 1;
    if (state.isDown) throw new FleetError('There is no access.');
    return shownCluster({ '/api/v1/nodes': [OUT] }, NOW);
  };
  const { fleet, store, rulesStore } = embeddedFleet(t, { clusters: ['prod'], clock }, { cluster });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce\n' }, await fleet.operator());
  const trips = [{ scope: 'zone', zone: 'z1', trippedAt: NOW, nodes: 3, outOf: 4 }] as const;
  await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, trips);
  for (const [index, node] of ['out', 'up'].entries()) {
    const dueAt = NOW + 60_000 + index;
    const schedule = [aRecord({ name: node, dueAt, causes: [aReason(KEY)] })];
    const ref = { cluster: PROD, node: nodeName(node) };
    const taints = [aTaint({ key: KEY })];
    await store.commit(ref, 0, { node: aNode({ taints }), schedule, end: [], live: true }, NOW);
  }
  const read = (before?: Snapshot) => view(fleet, [PROD], () => ({}), { clock, before });
  return { state, clock, read };
}

const gatesOf = ({ clusters: [cluster] }: Snapshot) => cluster?.pending?.map(({ gates }) => gates.length);

test('a tripped zone holds the pods of its nodes before they are due, and no others', async (t) => {
  const { read } = await tripped(t);
  const snapshot = await read();
  assert.deepEqual(gatesOf(snapshot), [1, 0]);
  assert.equal(statusOf(snapshot).clusters[0]?.nextAt, NOW + 60_001);
});

test('zones are read once a minute, and are not known if the cluster does not answer', async (t) => {
  const { read, state, clock } = await tripped(t);
  const snapshot = await read();
  assert.deepEqual(gatesOf(await read(snapshot)), [1, 0]);
  assert.equal(state.reads, 1);
  state.isDown = true;
  await clock.advanceTo(NOW + 60_000);
  assert.deepEqual(gatesOf(await read(snapshot)), [0, 0]);
  assert.equal(state.reads, 2);
});
