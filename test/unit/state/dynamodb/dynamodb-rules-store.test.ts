import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { clusterName } from '#shared/eviction/identity.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { rulesStoreContract } from '#test/contracts/rules-store-contract.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

function aRulesStore() {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const commands: string[] = [];
  const client = fakeClient(async (command) => {
    commands.push((command as object).constructor.name);
    return fake.perform(command);
  });
  return {
    fake,
    commands,
    rulesStore: new DynamoDbRulesStore(new DynamoDbTable({ client, tableName: 'table' })),
  };
}

rulesStoreContract('DynamoDbRulesStore over the fake DynamoDB', async () => ({
  rulesStore: aRulesStore().rulesStore,
  close: async () => undefined,
}));

const [prod, other] = [clusterName('prod'), clusterName('other')];

/** An item with one attribute of a newer release. */
const newer = (pk: string, sk: string, attributes: object) => toAttributes({ pk, sk, ...attributes });

test('rejects unknown settings of a newer release for the affected cluster only', async () => {
  for (const item of [
    newer('CLUSTER#prod', 'POLICY', { revision: 1, freeze: true }),
    newer('CLUSTER#prod', 'POLICY', {
      revision: 1,
      stops: [],
      holds: [{ id: 'h', target: { kind: 'zone' } }],
    }),
    newer('LEASE#prod', 'GUARD', { revision: 1, trips: [{ scope: 'rack' }] }),
  ]) {
    const { fake, rulesStore } = aRulesStore();
    fake.set(item, item);
    await assert.rejects(rulesStore.read(prod), { name: 'StoreError', message: /newer release/ });
    assert.deepEqual([...(await rulesStore.readAll([prod, other])).keys()], [other]);
  }
});

test("rejects every cluster if the stop of all clusters can't be read", async () => {
  const { fake, rulesStore } = aRulesStore();
  const item = newer('FLEET', 'STOP', { stop: { scope: 'region' }, stoppedAt: 1 });
  fake.set(item, item);
  await assert.rejects(rulesStore.read(prod), { name: 'StoreError' });
  await assert.rejects(rulesStore.readAll([prod]), { name: 'StoreError' });
});

test('reads one cluster, or 49, with one call', async () => {
  const { commands, rulesStore } = aRulesStore();
  await rulesStore.read(prod);
  await rulesStore.readAll(Array.from({ length: 49 }, (_, index) => clusterName(`c${index}`)));
  assert.deepEqual(commands, ['BatchGetItemCommand', 'BatchGetItemCommand']);
});

test('does not reread known fleet-wide items with a cluster', async () => {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const keys: unknown[] = [];
  const client = fakeClient(async (command) => {
    const { RequestItems = {} } = (command as BatchGetItemCommand).input;
    keys.push(...Object.values(RequestItems).flatMap(({ Keys = [] }) => Keys.map(({ pk }) => pk?.S)));
    return fake.perform(command);
  });
  const rulesStore = new DynamoDbRulesStore(new DynamoDbTable({ client, tableName: 'table' }));
  const known = { fleetRevision: 3, fleetStop: aStop };
  const storedRules = await rulesStore.read(prod, known);
  assert.deepEqual([storedRules.fleetRevision, storedRules.fleetStop], [3, aStop]);
  assert.deepEqual(keys, ['CLUSTER#prod', 'LEASE#prod']);
});

test('writes only changed parts of the rules, so that holds need no permission for policies', async () => {
  const { fake, rulesStore } = aRulesStore();
  const { orders } = await rulesStore.read(prod);
  const hold = {
    id: 'h',
    actor: 'anna',
    at: NOW,
    reason: 'x',
    target: { kind: 'pod', namespace: 'a', name: 'b' },
  } as const;
  const entry = { cluster: prod, actor: 'anna', at: NOW, kind: 'hold', message: 'held pod a/b' } as const;
  await rulesStore.changeOrders(prod, orders, { ...orders, holds: [hold] }, entry);
  const written = [...fake.items()].find(({ sk }) => sk?.S === 'POLICY');
  assert.deepEqual(Object.keys(written ?? {}).toSorted(), ['holds', 'pk', 'revision', 'sk']);
  assert.deepEqual((await rulesStore.read(prod)).orders, { revision: 1, stops: [], holds: [hold] });
});

const aStop = { actor: 'anna', at: NOW, reason: 'x', scope: 'fleet' } as const;
const anEntry = { actor: 'anna', at: NOW, kind: 'stop', message: 'stopped evictions' } as const;
const daysKept = (fake: FakeDynamoDb) =>
  [...fake.items()]
    .filter(({ sk }) => sk?.S?.startsWith('AUDIT#'))
    .map(({ ttl }) => (Number(ttl?.N) - Math.ceil(NOW / 1000)) / 86_400);

test("keeps audit entries for the table's retention tag, which is read once", async () => {
  const { fake, commands, rulesStore } = aRulesStore();
  fake.tags = [
    { Key: 'team', Value: 'platform' },
    { Key: 'taintward:history-days', Value: '90' },
  ];
  await rulesStore.changeFleetStop(undefined, aStop, anEntry);
  await rulesStore.changeFleetStop(aStop, undefined, anEntry);
  assert.deepEqual(daysKept(fake), [90, 90]);
  assert.equal(commands.filter((name) => name === 'DescribeTableCommand').length, 1);
});

test('keeps audit entries for a week without a usable tag', async () => {
  for (const tags of [[], [{ Key: 'taintward:history-days', Value: 'for ever' }]]) {
    const { fake, rulesStore } = aRulesStore();
    fake.tags = tags;
    await rulesStore.changeFleetStop(undefined, aStop, anEntry);
    assert.deepEqual(daysKept(fake), [7]);
  }
  const { fake, rulesStore } = aRulesStore();
  Object.defineProperty(fake, 'tags', {
    get: () => {
      throw Object.assign(new Error('not authorized'), { name: 'AccessDeniedException' });
    },
  });
  assert.equal(await rulesStore.changeFleetStop(undefined, aStop, anEntry), 'changed');
  assert.deepEqual(daysKept(fake), [7]);
});
