import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import type { Access } from '#shared/state/registry.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

const access: Access = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' };
const prod = { name: clusterName('prod'), access, addedAt: NOW };

/** A registry of `prod` and of items that another writer changed. */
async function aRegistry(...items: readonly Readonly<Record<string, unknown>>[]) {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const client = fakeClient(async (command) => fake.perform(command));
  const registry = new DynamoDbClusterRegistry(new DynamoDbTable({ client, tableName: 'table' }));
  await registry.add(prod);
  for (const item of items) fake.set(toAttributes(item), toAttributes(item));
  return registry;
}

const ofTorn = { pk: 'CLUSTER#torn', sk: 'REGISTRATION', clusterKey: 'CLUSTERS', clusterSort: 'torn' };

test('replaces only a registration that exists', async () => {
  const registry = await aRegistry();
  const moved = { ...prod, access: { ...access, region: 'eu-north-1' } };
  assert.equal(await registry.replace(moved), 'replaced');
  assert.deepEqual(await registry.get(prod.name), moved);
  assert.equal(await registry.replace({ ...moved, name: clusterName('other') }), 'unknown');
  assert.equal(await registry.get(clusterName('other')), undefined);
});

describe('an invalid registry item', () => {
  for (const [what, item, why] of [
    ['no moment', { access }, 'addedAt: is missing'],
    [
      'a moment that is none',
      { access, addedAt: 'yesterday' },
      'addedAt: Invalid input: expected number, received string',
    ],
    ['no access', { addedAt: NOW }, 'access: is missing'],
    [
      'an access that is none',
      { addedAt: NOW, access: [] },
      'access: Invalid input: expected object, received array',
    ],
  ] as const)
    test(`makes only its own cluster unreachable: ${what}`, async () => {
      const registry = await aRegistry({ ...ofTorn, ...item });
      const { clusters, strays } = await registry.list();
      const [first, torn] = clusters;
      assert.deepEqual([first, strays], [prod, []]);
      assert.equal(torn?.name, 'torn');
      const reason = `its registration cannot be read (${why}); deploy the release that wrote it, or register the cluster again`;
      assert.deepEqual(torn.access, { kind: 'unreadable', reason });
      assert.deepEqual(await registry.get(clusterName('torn')), torn);
      assert.equal(await registry.remove(clusterName('torn')), 'removed');
    });

  test('uses the cluster name in its key, whatever the index sorts by', async () => {
    const registry = await aRegistry({ ...ofTorn, clusterSort: 'prod', access, addedAt: NOW });
    const { clusters } = await registry.list();
    assert.deepEqual(
      clusters.map(({ name }) => name),
      ['prod', 'torn'],
    );
  });

  test('is reported and skipped if its key names no cluster', async () => {
    const stray = { clusterKey: 'CLUSTERS', access, addedAt: NOW };
    const registry = await aRegistry(
      { ...stray, pk: 'prod#n1', sk: 'NODE', clusterSort: 'a' },
      { ...stray, pk: 'CLUSTER#prod', sk: 'POLICY', clusterSort: 'b' },
      { ...stray, pk: 'CLUSTER#two\nlines', sk: 'REGISTRATION', clusterSort: 'c' },
    );
    assert.deepEqual(await registry.list(), {
      clusters: [prod],
      strays: [
        'The item NODE of prod#n1 is not a valid cluster registration.',
        'The item POLICY of CLUSTER#prod is not a valid cluster registration.',
        'The item REGISTRATION of CLUSTER#two\\u000alines is not a valid cluster registration.',
      ],
    });
  });
});
