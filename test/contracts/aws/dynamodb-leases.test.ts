import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
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

test('DynamoDbLeases look at many leases in one call, and leave out leases that were never acquired', async () => {
  const leases = new DynamoDbLeases(table.table);
  const [held, released, unknown] = [aCluster('a/b#c'), aCluster(), aCluster()];
  const lease = await leases.take(held, undefined, 'a', NOW);
  const gone = await leases.take(released, undefined, 'a', NOW);
  assert.ok(lease && gone);
  await leases.release(gone);
  const found = await leases.readAll([held, released, unknown]);
  const { holder: _holder, version: _version, ...free } = gone;
  assert.deepEqual(
    new Map(found.map((record) => [record.cluster, record])),
    new Map([
      [held, lease],
      [released, free],
    ]),
  );
});
