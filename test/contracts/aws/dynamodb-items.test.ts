import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { GetItemCommand, UpdateItemCommand, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { fromItem, toItem } from '#shared/store/attribute-values.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { TTL_ATTRIBUTE } from '#shared/store/dynamodb-table.ts';
import { SCHEDULED_GRACE_SECONDS, TOMBSTONE_SECONDS } from '#shared/store/retention.ts';
import type { Commit } from '#shared/store/store.ts';
import { createTestTable, type TestTable } from '#test/aws/dynamodb-table.ts';
import { aNode, aRecord, aRef, NOW, someRecords } from '../partition-builders.ts';

const NOW_SECONDS = NOW / 1000;

describe('what DynamoDbStore leaves in its table', () => {
  let table: TestTable;
  let store: DynamoDbStore;
  before(async () => {
    table = await createTestTable();
    store = new DynamoDbStore(table);
  });
  after(() => table.close());

  async function itemOf(ref: NodeRef, sk: string): Promise<Record<string, unknown>> {
    const key = toItem({ pk: nodeKey(ref), sk });
    const { Item } = await table.client.send(
      new GetItemCommand({ TableName: table.tableName, Key: key, ConsistentRead: true }),
    );
    assert.ok(Item, `no item ${sk}`);
    return fromItem(Item);
  }
  const recordItem = (ref: NodeRef, { uid }: EvictionRecord) => itemOf(ref, `EVICTION#${uid}`);

  async function write(ref: NodeRef, change: Partial<Commit>): Promise<void> {
    const { revision } = await store.load(ref, { kind: 'pods', uids: [] });
    await store.commit(ref, revision, { evictions: [], live: true, ...change }, NOW);
  }

  test('the table takes the attribute that its items are removed by', async () => {
    const { TimeToLiveSpecification } = await table.client.send(
      new UpdateTimeToLiveCommand({
        TableName: table.tableName,
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
      }),
    );
    assert.deepEqual(TimeToLiveSpecification, { AttributeName: TTL_ATTRIBUTE, Enabled: true });
  });

  test('a scheduled record is removed an hour after its deadline, rounded up, and is in the index', async () => {
    const ref = aRef();
    const record = aRecord({ fireAt: NOW + 1 });
    await write(ref, { evictions: [record] });
    const item = await recordItem(ref, record);
    assert.equal(item[TTL_ATTRIBUTE], NOW_SECONDS + 1 + SCHEDULED_GRACE_SECONDS);
    assert.match(`${item['duePk']}`, /^DUE#([0-9]|1[0-5])$/);
    assert.equal(item['dueSk'], `${String(NOW + 1).padStart(16, '0')}#${nodeKey(ref)}`);
  });

  test('a deadline at the end of time has a time to live that is still a date', async () => {
    const ref = aRef();
    const record = aRecord({ fireAt: 8.64e15 });
    await write(ref, { evictions: [record] });
    const ttl = (await recordItem(ref, record))[TTL_ATTRIBUTE];
    assert.equal(ttl, 8.64e12);
    assert.ok(!Number.isNaN(new Date(Number(ttl) * 1000).getTime()));
  });

  for (const state of ['cancelled', 'done', 'gone'] as const) {
    test(`a record written as ${state} is removed after the tombstone time and is not in the index`, async () => {
      const ref = aRef();
      const record = aRecord();
      await write(ref, { evictions: [record] });
      await write(ref, { evictions: [{ ...record, state }] });
      const item = await recordItem(ref, record);
      assert.equal(item[TTL_ATTRIBUTE], NOW_SECONDS + TOMBSTONE_SECONDS);
      assert.ok(!('duePk' in item) && !('dueSk' in item));
    });
  }

  test('a settled record is removed after the tombstone time and is not in the index', async () => {
    const ref = aRef();
    const record = aRecord();
    await write(ref, { evictions: [record] });
    await store.settle(ref, [{ uid: record.uid, state: 'done' }], NOW + 5_000);
    const item = await recordItem(ref, record);
    assert.equal(item[TTL_ATTRIBUTE], NOW_SECONDS + 5 + TOMBSTONE_SECONDS);
    assert.ok(!('duePk' in item) && !('dueSk' in item));
  });

  test('a node has a time to live only while nothing on it is live', async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    assert.ok(!(TTL_ATTRIBUTE in (await itemOf(ref, 'NODE'))));
    await write(ref, { node: aNode({ taints: [] }), live: false });
    assert.equal((await itemOf(ref, 'NODE'))[TTL_ATTRIBUTE], NOW_SECONDS + TOMBSTONE_SECONDS);
    await write(ref, { evictions: [aRecord()] });
    assert.ok(!(TTL_ATTRIBUTE in (await itemOf(ref, 'NODE'))));
  });

  test('a node is in the index only while it has taints', async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    const tainted = await itemOf(ref, 'NODE');
    assert.deepEqual([tainted['duePk'], tainted['dueSk']], [`TAINTED#${ref.cluster}`, ref.node]);
    await write(ref, { node: aNode({ taints: [] }) });
    const untainted = await itemOf(ref, 'NODE');
    assert.ok(!('duePk' in untainted) && !('dueSk' in untainted));
  });

  test("a node's attributes that this release does not know survive its commits", async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: toItem({ pk: nodeKey(ref), sk: 'NODE' }),
        UpdateExpression: 'SET fromTheFuture = :value',
        ExpressionAttributeValues: toItem({ ':value': 'kept' }),
      }),
    );
    await write(ref, { node: aNode({ taints: [] }), evictions: [aRecord()], live: false });
    assert.equal((await itemOf(ref, 'NODE'))['fromTheFuture'], 'kept');
    assert.deepEqual((await store.load(ref, { kind: 'all' })).node, aNode({ taints: [] }));
  });

  for (const chunks of [0, 1, 2]) {
    test(`a commit that crashes behind chunk ${chunks} of 3 is completed by the same change`, async () => {
      const ref = aRef();
      await write(ref, { node: aNode({ taints: [] }) });
      const change = { node: aNode(), evictions: someRecords(250), live: true };
      await crashing(chunks, () => assert.rejects(store.commit(ref, 1, change, NOW), /crashed/));
      const left = await store.load(ref, { kind: 'all' });
      assert.equal(left.evictions.size, chunks * 99);
      assert.deepEqual(left.node, aNode({ taints: [] }));
      assert.equal(await store.commit(ref, 1 + chunks, change, NOW), 'committed');
      const { node, evictions } = await store.load(ref, { kind: 'all' });
      assert.deepEqual(node, aNode());
      assert.equal(evictions.size, 250);
    });
  }

  test('a partition of several answers of 1 MB reads back whole', async () => {
    const ref = aRef();
    const records = someRecords(250, { because: ['x'.repeat(10_000)] });
    await write(ref, { node: aNode(), evictions: records });
    assert.equal((await store.load(ref, { kind: 'all' })).evictions.size, 250);
    assert.equal((await store.load(ref, { kind: 'due', now: NOW + 300_000 })).evictions.size, 250);
  });

  /** Lets `count` transactions through while `work` runs, and breaks the client at the next. */
  async function crashing(count: number, work: () => Promise<void>): Promise<void> {
    let transactions = 0;
    table.client.middlewareStack.add(
      (next, context) => async (args) => {
        if (context['commandName'] === 'TransactWriteItemsCommand' && transactions++ >= count) {
          throw new Error('crashed');
        }
        return next(args);
      },
      { step: 'initialize', name: 'crash' },
    );
    try {
      await work();
    } finally {
      table.client.middlewareStack.remove('crash');
    }
  }
});
