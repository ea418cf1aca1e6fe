import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDbRateLimiter } from '#shared/clusters/dynamodb-rate-limiter.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { aCluster, NOW } from '#test/contracts/partition-builders.ts';
import { rateLimiterContract } from '#test/contracts/rate-limiter-contract.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

/** A table in memory, and how often it was asked. */
function counted() {
  const fake = new FakeDynamoDb(new DrivenClock(NOW));
  let calls = 0;
  const client = fakeClient(async (command) => {
    calls += 1;
    return fake.perform(command);
  });
  const open = () => new DynamoDbRateLimiter(new DynamoDbTable({ client, tableName: 'taintward' }));
  return { open, calls: () => calls };
}

rateLimiterContract(
  'DynamoDbRateLimiter',
  async () => ({ open: counted().open, close: async () => undefined }),
  {
    shared: true,
  },
);

test('a process that knows its cluster takes turns by one call, and asks for none where there are none', async () => {
  const { open, calls } = counted();
  const [limiter, cluster] = [open(), aCluster()];
  await limiter.take(cluster, 20, 1, NOW);
  await limiter.take(cluster, 45, 1, NOW + 1000);
  assert.equal(calls(), 2);
  assert.deepEqual(await limiter.take(cluster, 1, 1, NOW + 2000), []);
  assert.equal(calls(), 2);
  await limiter.take(cluster, 1, 1, NOW + 100_000);
  assert.equal(calls(), 3);
});

test('one that begins while others are at it takes two', async () => {
  const { open, calls } = counted();
  const cluster = aCluster();
  await open().take(cluster, 20, 1, NOW);
  assert.deepEqual(await open().take(cluster, 1, 1, NOW + 500), [NOW + 20_000]);
  assert.equal(calls(), 3);
});
