import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchWriteItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { clusterName } from '#shared/eviction/identity.ts';
import { copyTable } from '#shared/operations/fleet/copy-table.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { Operator } from '#shared/state/operator.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

const PROD = clusterName('prod');
const NOW = 1_000;

/** A table and everything that uses it. */
function installation(tableName: string) {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => fake.perform(command)),
    tableName,
  });
  const rulesStore = new DynamoDbRulesStore(table);
  return {
    ...{ fake, rulesStore, store: new DynamoDbStore(table), leases: new DynamoDbLeases(table) },
    registry: new DynamoDbClusterRegistry(table),
    operator: new Operator({ rulesStore, clock: { now: () => NOW }, who: 'anna' }),
  };
}

test('a replacement installation keeps clusters, stop, and countdowns, and evicts nothing until permitted', async () => {
  const [before, after] = ['taintward', 'taintward-2'].map(installation);
  assert.ok(before && after);
  const ref = aRef(PROD);
  await before.registry.add({
    ...{ name: PROD, access: { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' }, addedAt: NOW },
  });
  const scheduled = { node: aNode(), schedule: [aRecord()], end: [], live: true };
  await before.store.commit(ref, 0, scheduled, NOW);
  await before.operator.stopAll({ why: 'a migration' });

  const client = fakeClient(async (command) => {
    if (command instanceof ScanCommand) {
      assert.equal(command.input.TableName, 'taintward');
      return { Items: [...before.fake.items()] };
    }
    assert.ok(command instanceof BatchWriteItemCommand);
    for (const { PutRequest } of command.input.RequestItems?.['taintward-2'] ?? []) {
      const item = PutRequest?.Item ?? assert.fail('only puts are expected');
      after.fake.set(item, item);
    }
    return {};
  });
  await copyTable(client, 'taintward', 'taintward-2');

  assert.deepEqual(await after.registry.list(), await before.registry.list());
  assert.deepEqual(await after.store.load(ref, NOW), await before.store.load(ref, NOW));
  assert.equal((await after.rulesStore.fleetStop())?.why, 'a migration');
  assert.equal(await after.leases.look(PROD), undefined);
  await after.operator.resumeAll('it is there');
  assert.equal(await after.rulesStore.fleetStop(), undefined);
});
