import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { clusterName } from '#shared/eviction/identity.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import type { Access, RegisteredCluster } from '#shared/state/registry.ts';
import { createTestTable, type TestTable } from '#test/aws/dynamodb-table.ts';
import { eventually } from '../eventually.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '../partition-builders.ts';

const ACCESSES: readonly Access[] = [
  { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' },
  {
    kind: 'eks',
    clusterName: 'prod',
    region: 'eu-west-1',
    role: { arn: 'arn:aws:iam::210987654321:role/taintward-access', externalId: 'x' },
  },
  {
    kind: 'kubeconfig-secret',
    secretArn: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod-AbCdEf',
    context: 'admin@prod',
  },
  {
    kind: 'eks',
    clusterName: 'prod',
    region: 'eu-west-1',
    role: {
      relay: { arn: 'arn:aws:iam::210987654321:role/taintward-relay' },
      evict: { arn: 'arn:aws:iam::210987654321:role/taintward-evict', externalId: 'x' },
    },
  },
  {
    kind: 'kubeconfig-secret',
    secretArn: {
      relay: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward-relay/prod-AbCdEf',
      evict: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward-evict/prod-AbCdEf',
    },
  },
  { kind: 'local-context', context: 'kind', kubeconfig: '/home/me/.kube/config' },
  { kind: 'agent', agent: 'edge-1' },
];

const registered = (name: string, access = ACCESSES[0] as Access): RegisteredCluster<Access> => ({
  name: clusterName(name),
  access,
  addedAt: NOW,
});

describe('DynamoDbClusterRegistry', () => {
  let table: TestTable;
  let registry: DynamoDbClusterRegistry;
  before(async () => {
    table = await createTestTable();
    registry = new DynamoDbClusterRegistry(table.table);
  });
  after(() => table.close());
  beforeEach(async () => {
    for (const { name } of (await registry.list()).clusters) await registry.remove(name);
  });

  const listed = async (count: number): Promise<readonly RegisteredCluster[]> => {
    let found: readonly RegisteredCluster[] = [];
    await eventually(async () => {
      found = (await registry.list()).clusters;
      assert.equal(found.length, count);
    });
    return found;
  };

  test('reads registered clusters back unchanged, singly and in the order of their names', async () => {
    const clusters = ACCESSES.map((access, index) =>
      registered(`arn:aws:eks:x:1:cluster/c${9 - index}`, access),
    );
    for (const cluster of clusters) {
      assert.equal(await registry.add(cluster), 'added');
      assert.deepEqual(await registry.get(cluster.name), cluster);
    }
    assert.deepEqual(await listed(ACCESSES.length), clusters.toReversed());
  });

  test('registers a name once; the second registration changes nothing', async () => {
    const [first, second] = [registered('one'), registered('one', ACCESSES[1])];
    const outcomes = await Promise.all([registry.add(first), registry.add(second)]);
    assert.deepEqual(outcomes.toSorted(), ['added', 'exists']);
    assert.deepEqual(await registry.get(first.name), outcomes[0] === 'added' ? first : second);
  });

  test('replaces the access of a registered cluster, and of no other', async () => {
    const changed = registered('one', ACCESSES[1]);
    assert.equal(await registry.replace(changed), 'unknown');
    assert.equal(await registry.get(changed.name), undefined);
    await registry.add(registered('one'));
    assert.equal(await registry.replace(changed), 'replaced');
    assert.deepEqual(await registry.get(changed.name), changed);
    assert.deepEqual(await listed(1), [changed]);
  });

  test('forgets a removed cluster, whose name can be registered again', async () => {
    const cluster = registered('one');
    await registry.add(cluster);
    assert.equal(await registry.remove(cluster.name), 'removed');
    assert.equal(await registry.get(cluster.name), undefined);
    assert.deepEqual(await registry.list(), { clusters: [], strays: [] });
    assert.equal(await registry.remove(cluster.name), 'unknown');
    assert.equal(await registry.add(registered('one', ACCESSES[2])), 'added');
  });

  test('keeps the epoch of a lease when its cluster is removed and added', async () => {
    const leases = new DynamoDbLeases(table.table);
    const { name } = registered('leased');
    await registry.add(registered('leased'));
    const before = await leases.take(name, undefined, 'a', NOW);
    await registry.remove(name);
    await registry.add(registered('leased'));
    assert.equal((await leases.read(name))?.epoch, before?.epoch);
  });

  test('lists no nodes and no ends, which are in the same index', async () => {
    const ref = aRef();
    const store = new DynamoDbStore(table.table);
    await store.commit(ref, 0, { node: aNode(), schedule: [aRecord()], end: [], live: true }, NOW);
    await store.end(ref, [anEnding()], NOW);
    await registry.add(registered('one'));
    assert.deepEqual(
      (await listed(1)).map(({ name }) => name),
      ['one'],
    );
  });

  test('lists more clusters than fit into one page', async () => {
    const names = Array.from({ length: 120 }, (_, index) => `cluster-${String(index).padStart(3, '0')}`);
    await Promise.all(names.map((name) => registry.add(registered(name))));
    assert.deepEqual(
      (await listed(names.length)).map(({ name }) => name),
      names,
    );
  });

  test('skips only the cluster whose access a newer release wrote', async () => {
    await registry.add(registered('newer'));
    await registry.add(registered('one'));
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: toAttributes({ pk: 'CLUSTER#newer', sk: 'REGISTRATION' }),
        UpdateExpression: 'SET access = :access',
        ExpressionAttributeValues: toAttributes({ ':access': { kind: 'pigeon' } }),
      }),
    );
    const [newer, one] = await listed(2);
    assert.equal(newer?.access.kind, 'unreadable');
    assert.match(
      newer.access.kind === 'unreadable' ? newer.access.reason : '',
      /^its registration cannot be read \(access\.kind: .*\); deploy the release that wrote it/,
    );
    assert.deepEqual(one, registered('one'));
  });

  test('reports a missing table', async () => {
    const missing = new DynamoDbClusterRegistry(
      new DynamoDbTable({ client: table.client, tableName: 'nobody' }),
    );
    await assert.rejects(missing.list(), { name: 'StoreError', message: /nobody .*does not exist/ });
    await assert.rejects(missing.add(registered('one')), { name: 'StoreError' });
  });
});
