import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { aCluster, NOW } from '#test/contracts/partition-builders.ts';
import { permitsContract, waitingPods } from '#test/contracts/permits-contract.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

/** An in-memory table and the number of its calls. */
function counted() {
  const clock = new DrivenClock(NOW);
  const fake = new FakeDynamoDb(clock);
  let calls = 0;
  const client = fakeClient(async (command) => {
    calls += 1;
    return fake.perform(command);
  });
  const open = () => dynamoDbPermits(new DynamoDbTable({ client, tableName: 'taintward' }));
  return { open, fake, clock, calls: () => calls };
}

permitsContract('dynamoDbPermits', async () => ({ open: counted().open, close: async () => undefined }), {
  shared: true,
});

const DAY_LIMIT = { workload: 'default/Deployment/web', count: 1, windowMs: 86_400_000 };

test('removes permits by time to live, a day after they have expired', async () => {
  const { open, fake, clock } = counted();
  await open().take(aCluster(), waitingPods(1), DAY_LIMIT, clock.now() + 1);
  await clock.advanceTo(NOW + 2 * 86_400_000 + PERMIT_LASTS_MS);
  assert.equal(fake.sweep().length, 0);
  await clock.advanceTo(NOW + 2 * 86_400_000 + PERMIT_LASTS_MS + 1_000);
  assert.equal(fake.sweep().length, 1);
});

test('takes permits with two calls, and two more per concurrent taker', async () => {
  const { open, calls } = counted();
  const cluster = aCluster();
  await open().take(cluster, waitingPods(20), { evictionRate: 1, releaseRate: 50 }, NOW);
  assert.equal(calls(), 2);
  await Promise.all(
    [1, 2].map(() => open().take(cluster, waitingPods(1), { evictionRate: 1, releaseRate: 50 }, NOW)),
  );
  assert.equal(calls(), 8);
});

test('takes permits of a workload with two calls, and with one if none is left', async () => {
  const { open, calls } = counted();
  const cluster = aCluster();
  await open().take(cluster, waitingPods(1), DAY_LIMIT, NOW);
  assert.equal(calls(), 2);
  await open().take(cluster, waitingPods(1, { uid: podUid('other') }), DAY_LIMIT, NOW);
  assert.equal(calls(), 3);
});

test('proofs in the partition of the permits are read without passes, probe, or failure', async () => {
  const { fake } = counted();
  const client = fakeClient(async (command) => fake.perform(command));
  const proofs = dynamoDbProofs(new DynamoDbTable({ client, tableName: 'taintward' }));
  const [probed, passed] = [aCluster(), aCluster()];
  assert.deepEqual(await proofs.read(probed), { passes: 0 });
  await proofs.notedProbe(probed, NOW, NOW);
  assert.deepEqual(await proofs.read(probed), { passes: 0, probe: { sentAt: NOW } });
  await proofs.notedPass(passed, NOW);
  assert.deepEqual(await proofs.read(passed), { passes: 1 });
});

test('removes proofs and traces by time to live, after a day', async () => {
  const { fake, clock } = counted();
  const client = fakeClient(async (command) => fake.perform(command));
  const proofs = dynamoDbProofs(new DynamoDbTable({ client, tableName: 'taintward' }));
  await proofs.notedProbe(aCluster(), NOW, NOW);
  await proofs.notedPass(aCluster(), NOW);
  await proofs.notedDelta(aCluster(), NOW, NOW);
  await clock.advanceTo(NOW + 86_400_000 - 1);
  assert.equal(fake.sweep().length, 0);
  await clock.advanceTo(NOW + 86_400_000);
  assert.equal(fake.sweep().length, 3);
});
