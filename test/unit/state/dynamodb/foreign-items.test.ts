import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { clusterName, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { historyKeys } from '#shared/state/dynamodb/history-items.ts';
import { padded, taintedKeys } from '#shared/state/dynamodb/items.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { aNode, anEnding, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

/*
 * A writer with access to one cluster's partitions can set any index attributes in them. IAM restricts writes by
 * partition keys, but not by index keys.
 */

const [PROD, EDGE] = [clusterName('prod'), clusterName('edge')];
const ref = { cluster: PROD, node: nodeName('n1') };

let table: DynamoDbTable;
/** Partition keys of all items that were read in batches. */
let read: string[];
beforeEach(async () => {
  read = [];
  const fake = new FakeDynamoDb({ now: () => NOW });
  const client = fakeClient(async (command) => {
    if (command instanceof BatchGetItemCommand)
      for (const { Keys = [] } of Object.values(command.input.RequestItems ?? {}))
        read.push(...Keys.map(({ pk }) => pk?.S ?? ''));
    return fake.perform(command);
  });
  table = new DynamoDbTable({ client, tableName: 'table' });
  const store = new DynamoDbStore(table);
  const change = { node: aNode(), schedule: [aRecord()], end: [anEnding()], live: true };
  await store.commit(ref, 0, change, NOW);
});

/** Adds an item as a writer of cluster `edge` that the index lists under `clusterKey`. */
const plant = (
  clusterKey: string,
  fields: object = {},
  pk = nodeKey({ cluster: EDGE, node: nodeName('n1') }),
) => table.add({ pk, sk: `PLANTED#${clusterKey}`, clusterKey, clusterSort: `${padded(NOW)}#n1`, ...fields });

describe("an item that a foreign writer added to another cluster's index", () => {
  test("is neither listed nor read as the cluster's tainted node, so readers of one cluster need no other permission", async () => {
    for (const key of taintedKeys(PROD)) await plant(key, { revision: 1, taints: 'nonsense' });
    const found = await Array.fromAsync(new DynamoDbStore(table).taintedNodes(PROD));
    assert.deepEqual(
      found.map(({ node }) => node),
      ['n1'],
    );
    assert.deepEqual(new Set(read), new Set(['prod#n1']));
  });

  test("is not read as the cluster's history", async () => {
    for (const key of [...historyKeys(PROD), ...taintedKeys(PROD)]) await plant(key);
    const history = new DynamoDbHistory(table);
    await history.nodesEvictedFrom(PROD, 0);
    const entries = await Array.fromAsync(history.entries({ cluster: PROD, from: 0, to: NOW + 1 }));
    assert.ok(entries.length > 0);
    assert.deepEqual(new Set(read), new Set(['prod#n1']));
  });

  test('is not listed as a registration', async () => {
    await plant('CLUSTERS', { addedAt: NOW, access: { kind: 'agent', agent: 'edge-1' } });
    const { clusters, strays } = await new DynamoDbClusterRegistry(table).list();
    assert.deepEqual([clusters, strays.length], [[], 1]);
  });
});

describe('the audit log', () => {
  const query = { from: NOW, to: NOW + 1 };
  const entry: AuditEntry = { cluster: PROD, actor: 'anna', at: NOW, kind: 'retry', message: 'tried again' };
  const plantEntry = (fields: object, pk?: string) =>
    plant('AUDIT', { ...entry, ...fields }, ...(pk === undefined ? [] : ([pk] as const)));

  test('accepts entries only from partitions whose writers may write them', async () => {
    const rulesStore = new DynamoDbRulesStore(table);
    await rulesStore.note(entry);
    await plantEntry({ actor: 'forged' }, 'LEASE#edge');
    await plantEntry({ actor: 'forged', kind: 'guard-tripped' });
    assert.deepEqual(
      (await rulesStore.audit(query)).map(({ actor: who }) => who),
      ['anna'],
    );
  });

  test("accepts a guard's entry about its own cluster", async () => {
    await plantEntry({ cluster: EDGE, actor: 'relay', kind: 'guard-tripped' }, 'LEASE#edge');
    const found = await new DynamoDbRulesStore(table).audit(query);
    assert.deepEqual(
      found.map(({ actor: who }) => who),
      ['relay'],
    );
  });

  test('skips unreadable entries of relays, but not those of operators', async () => {
    const rulesStore = new DynamoDbRulesStore(table);
    await rulesStore.note(entry);
    await plantEntry({ at: 'nonsense' }, 'LEASE#edge');
    await plantEntry({ at: 'nonsense' });
    assert.equal((await rulesStore.audit(query)).length, 1);
    await plantEntry({ at: 'nonsense' }, 'CLUSTER#edge');
    await assert.rejects(rulesStore.audit(query), { name: 'StoreError' });
  });
});
