import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DynamoDbLeases } from '#shared/clusters/dynamodb-leases.ts';
import { createTestTable, type TestTable } from '#test/aws/dynamodb-table.ts';
import { leaseContract } from '../lease-contract.ts';
import { aCluster, NOW } from '../partition-builders.ts';

leaseContract('DynamoDbLeases', async () => {
  const { table, close } = await createTestTable();
  return { leases: new DynamoDbLeases(table), close };
});

let table: TestTable;
before(async () => {
  table = await createTestTable();
});
after(() => table.close());

test('DynamoDbLeases tell which clusters are spoken for: neither the released nor the expired nor the unknown', async () => {
  const leases = new DynamoDbLeases(table.table);
  const [held, released, expired, unknown] = [aCluster(), aCluster(), aCluster(), aCluster()];
  await leases.acquire(held, 'a', NOW, 10_000);
  await leases.acquire(expired, 'a', NOW, 5_000);
  const lease = await leases.acquire(released, 'a', NOW, 10_000);
  assert.ok(lease);
  await leases.release(lease);
  assert.deepEqual(await leases.held([held, released, expired, unknown], NOW + 5_000), new Set([held]));
});
