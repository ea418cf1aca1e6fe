import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDbRateLimiter } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { aCluster, NOW } from '#test/contracts/partition-builders.ts';
import { rateLimiterContract, waitingPods } from '#test/contracts/rate-limiter-contract.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

/** An in-memory table and the number of its calls. */
function counted() {
  const fake = new FakeDynamoDb(new DrivenClock(NOW));
  let calls = 0;
  const client = fakeClient(async (command) => {
    calls += 1;
    return fake.perform(command);
  });
  const open = () => new DynamoDbRateLimiter(new DynamoDbTable({ client, tableName: 'taintward' }));
  return { open, fake, calls: () => calls };
}

rateLimiterContract(
  'DynamoDbRateLimiter',
  async () => ({ open: counted().open, close: async () => undefined }),
  {
    shared: true,
  },
);

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
