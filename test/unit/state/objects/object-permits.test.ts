import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { unpack } from '#shared/state/objects/packed.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { sqlitePermits } from '#shared/state/sqlite/sqlite-state.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { permitsContract, waitingPods } from '#test/contracts/permits-contract.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const DAY_MS = 24 * 3_600_000;

permitsContract(
  'objectPermits, in a cluster,',
  async () => {
    const objects = new FakeObjects();
    return { open: () => objectPermits(objects), close: async () => undefined };
  },
  { shared: true },
);

permitsContract(
  'objectPermits, in SQLite,',
  async () => {
    const database = openDatabase(':memory:');
    return { open: () => sqlitePermits(database), close: async () => database.close() };
  },
  { shared: true },
);

test('writes nothing without granting a permit, and removes expired permits with the next grant', async () => {
  const objects = new FakeObjects();
  const permits = objectPermits(objects);
  const take = (workload: string, pod: string, at: number) => {
    const limit = { workload, count: 1, windowMs: 60_000 };
    return permits.take(clusterName('in-cluster'), waitingPods(1, { uid: podUid(pod) }), limit, at);
  };
  await take('web', 'a', NOW);
  const size = async () => JSON.stringify(await objects.get('taintward-permits-in-cluster')).length;
  const first = await size();
  await take('web', 'b', NOW + 1);
  assert.equal(objects.writes, 1);
  await take('api', 'c', NOW + 1_000_000);
  assert.ok((await size()) <= first);
});

test('keeps the permits of rates for a day, as clocks differ', async () => {
  const objects = new FakeObjects();
  const permits = objectPermits(objects);
  const keptAt = async (at: number) => {
    const limit = { workload: 'web', count: 1_000, windowMs: 60_000 };
    await permits.take(clusterName('in-cluster'), waitingPods(1), limit, at);
    const { binaryData } = (await objects.get('taintward-permits-in-cluster')) as {
      readonly binaryData: { readonly permits: string };
    };
    return (unpack(binaryData.permits, 'permits') as { readonly key: string }[]).map(({ key }) => key);
  };
  const rates = { evictionRate: 1, releaseRate: 1 };
  await permits.take(clusterName('in-cluster'), waitingPods(1), rates, NOW);
  assert.deepEqual(await keptAt(NOW + DAY_MS - 1), ['RATE', 'PERMITS#web']);
  assert.deepEqual(await keptAt(NOW + DAY_MS), ['PERMITS#web']);
});
