import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { DynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { aCluster, NOW } from '#test/contracts/partition-builders.ts';
import { permitsContract } from '#test/contracts/permits-contract.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

function tableInMemory() {
  const clock = new DrivenClock(NOW);
  const fake = new FakeDynamoDb(clock);
  const client = fakeClient(async (command) => fake.perform(command));
  const table = new DynamoDbTable({ client, tableName: 'taintward' });
  return { fake, clock, open: () => new DynamoDbPermits(table) };
}

permitsContract('DynamoDbPermits', async () => {
  const { open } = tableInMemory();
  return { open, close: async () => undefined };
});

test('removes permits by time to live, after they have expired', async () => {
  const { open, fake, clock } = tableInMemory();
  const take = (pod: string) => {
    const limit = { count: 1, windowMs: 86_400_000 };
    return open().take(cluster, 'default/Deployment/web', [podUid(pod)], limit, clock.now());
  };
  const cluster = aCluster();
  await take('a');
  await clock.advanceTo(NOW + 86_400_000);
  assert.equal(fake.sweep().length, 0);
  await clock.advanceTo(NOW + 176_400_000);
  assert.equal(fake.sweep().length, 1);
});
