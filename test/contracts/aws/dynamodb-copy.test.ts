import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CreateTableCommand, DeleteTableCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import { copyTable } from '#shared/operations/fleet/copy-table.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { createTestTable, type TestTable } from '#test/aws/dynamodb-table.ts';
import { tableDefinition } from '#test/aws/table-definition.ts';
import { aNode, aRef, NOW, someRecords } from '../partition-builders.ts';

let table: TestTable;
before(async () => {
  table = await createTestTable();
});
after(() => table.close());

test('restores a table item by item, over existing items and without leases', async () => {
  const { client, tableName } = table;
  const restoredName = `${tableName}-restored`;
  await client.send(new CreateTableCommand(tableDefinition(restoredName)));
  await waitUntilTableExists(
    { client, maxWaitTime: 60, minDelay: 1, maxDelay: 1 },
    { TableName: restoredName },
  );
  try {
    const restored = new DynamoDbTable({ client, tableName: restoredName });
    const ref = aRef();
    const schedule = someRecords(90);
    const change = { node: aNode(), schedule, end: [], live: true };
    await new DynamoDbStore(restored).commit(ref, 0, change, NOW);
    await new DynamoDbLeases(restored).take(ref.cluster, undefined, 'a relay that is gone', NOW);
    const before = { ...change, schedule: [], node: aNode({ taints: [] }) };
    await new DynamoDbStore(table.table).commit(ref, 0, before, NOW);

    assert.equal(await copyTable(client, restoredName, tableName), 1 + schedule.length);
    const [was, is] = await Promise.all(
      [restored, table.table].map((each) => new DynamoDbStore(each).load(ref, NOW)),
    );
    assert.deepEqual(is, was);
    const leases = new DynamoDbLeases(table.table);
    assert.equal(await leases.look(ref.cluster), undefined);
  } finally {
    await client.send(new DeleteTableCommand({ TableName: restoredName }));
  }
});
