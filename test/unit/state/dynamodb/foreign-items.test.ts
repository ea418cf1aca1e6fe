import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { clusterName, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { historyKeys, padded, taintedKeys } from '#shared/state/dynamodb/items.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { aNode, anEnding, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

/*
 * Who may write what the table has of one cluster may name in it what the index finds it by: IAM divides writes by partition
 * keys, and not by those of an index.
 */

const [PROD, EDGE] = [clusterName('prod'), clusterName('edge')];
const ref = { cluster: PROD, node: nodeName('n1') };

let table: DynamoDbTable;
/** Partition keys of all that was read in batches. */
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

/** What whoever may write of the cluster `edge` has the index list under that key. */
const plant = (
  clusterKey: string,
  fields: object = {},
  pk = nodeKey({ cluster: EDGE, node: nodeName('n1') }),
) => table.add({ pk, sk: `PLANTED#${clusterKey}`, clusterKey, clusterSort: `${padded(NOW)}#n1`, ...fields });

describe('what somebody put among the items of another cluster', () => {
  test('is no tainted node of that, and is not even read, which he may not who reads that cluster alone', async () => {
    for (const key of taintedKeys(PROD)) await plant(key, { revision: 1, taints: 'nonsense' });
    const found = await Array.fromAsync(new DynamoDbStore(table).taintedNodes(PROD));
    assert.deepEqual(
      found.map(({ node }) => node),
      ['n1'],
    );
    assert.deepEqual(new Set(read), new Set(['prod#n1']));
  });

  test('is no history of it', async () => {
    for (const key of [...historyKeys(PROD), ...taintedKeys(PROD)]) await plant(key);
    const history = new DynamoDbHistory(table);
    await history.nodesEvictedFrom(PROD, 0);
    const entries = await Array.fromAsync(history.entries({ cluster: PROD, from: 0, to: NOW + 1 }));
    assert.ok(entries.length > 0);
    assert.deepEqual(new Set(read), new Set(['prod#n1']));
  });

  test('is no registration', async () => {
    await plant('CLUSTERS', { addedAt: NOW, access: { kind: 'agent', agent: 'edge-1' } });
    const { clusters, strays } = await new DynamoDbClusterRegistry(table).list();
    assert.deepEqual([clusters, strays.length], [[], 1]);
  });
});

describe('in the audit', () => {
  const query = { from: NOW, to: NOW + 1 };
  const entry: AuditEntry = { cluster: PROD, who: 'anna', at: NOW, kind: 'retry', what: 'tried again' };
  const plantEntry = (fields: object, pk?: string) =>
    plant('AUDIT', { ...entry, ...fields }, ...(pk === undefined ? [] : ([pk] as const)));

  test('nobody speaks for others: an entry counts where those stand who may write it', async () => {
    const rulesStore = new DynamoDbRulesStore(table);
    await rulesStore.note(entry);
    await plantEntry({ who: 'forged' }, 'LEASE#edge');
    await plantEntry({ who: 'forged', kind: 'guard-tripped' });
    assert.deepEqual(
      (await rulesStore.audit(query)).map(({ who }) => who),
      ['anna'],
    );
  });

  test('a guard speaks for its own cluster', async () => {
    await plantEntry({ cluster: EDGE, who: 'relay', kind: 'guard-tripped' }, 'LEASE#edge');
    const found = await new DynamoDbRulesStore(table).audit(query);
    assert.deepEqual(
      found.map(({ who }) => who),
      ['relay'],
    );
  });

  test('what nobody can read keeps nobody from reading of the others, unless people wrote it', async () => {
    const rulesStore = new DynamoDbRulesStore(table);
    await rulesStore.note(entry);
    await plantEntry({ at: 'nonsense' }, 'LEASE#edge');
    await plantEntry({ at: 'nonsense' });
    assert.equal((await rulesStore.audit(query)).length, 1);
    await plantEntry({ at: 'nonsense' }, 'CLUSTER#edge');
    await assert.rejects(rulesStore.audit(query), { name: 'StoreError' });
  });
});
