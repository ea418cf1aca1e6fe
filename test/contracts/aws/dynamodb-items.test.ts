import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BatchWriteItemCommand, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { endedItem, endedSince } from '#shared/state/dynamodb/history-items.ts';
import { TTL_ATTRIBUTE } from '#shared/state/dynamodb/table-definition.ts';
import { type Commit, ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { HISTORY_DAYS, NODE_SECONDS, SCHEDULED_GRACE_SECONDS } from '#shared/state/stored.ts';
import { createTestTable, type TestTable } from '#test/aws/dynamodb-table.ts';
import { eventually } from '../eventually.ts';
import {
  aNode,
  anEnding,
  aReason,
  aRecord,
  aRef,
  NOW,
  outcomesOf,
  someRecords,
} from '../partition-builders.ts';

const NOW_SECONDS = NOW / 1000;
/** A strongly consistent read unit reads this many bytes. */
const READ_UNIT_BYTES = 4 * 1024;

describe('the items of DynamoDbStore', () => {
  let table: TestTable;
  let store: DynamoDbStore;
  before(async () => {
    table = await createTestTable();
    store = new DynamoDbStore(table.table);
  });
  after(() => table.close());

  async function itemOf(ref: NodeRef, sk: string): Promise<Item> {
    const item = await table.table.get({ pk: nodeKey(ref), sk });
    assert.ok(item, `no item ${sk}`);
    return item;
  }
  const recordItem = (ref: NodeRef, { uid }: EvictionRecord) => itemOf(ref, `SCHEDULED#${uid}`);
  const endedItems = (ref: NodeRef) =>
    Array.fromAsync(table.table.query(nodeKey(ref), endedSince(0), 'ENDED$'));

  async function write(ref: NodeRef, change: Partial<Commit>): Promise<void> {
    const { revision } = await store.load(ref, NOW, []);
    await store.commit(ref, revision, { schedule: [], end: [], live: true, ...change }, NOW);
  }

  test('support the time-to-live attribute of the table', async () => {
    const { TimeToLiveSpecification } = await table.client.send(
      new UpdateTimeToLiveCommand({
        TableName: table.tableName,
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
      }),
    );
    assert.deepEqual(TimeToLiveSpecification, { AttributeName: TTL_ATTRIBUTE, Enabled: true });
  });

  test('remove a scheduled record a day after its deadline, rounded up, and keep it out of the index', async () => {
    const ref = aRef();
    const record = aRecord({ dueAt: NOW + 1 });
    await write(ref, { schedule: [record] });
    const item = await recordItem(ref, record);
    assert.equal(item[TTL_ATTRIBUTE], NOW_SECONDS + 1 + SCHEDULED_GRACE_SECONDS);
    assert.ok(!('clusterKey' in item) && !('clusterSort' in item));
  });

  test('have a time to live that is a valid date for a deadline at the end of time', async () => {
    const ref = aRef();
    const record = aRecord({ dueAt: 8.64e15 });
    await write(ref, { schedule: [record] });
    const ttl = (await recordItem(ref, record))[TTL_ATTRIBUTE];
    assert.equal(ttl, 8.64e12);
    assert.ok(!Number.isNaN(new Date(Number(ttl) * 1000).getTime()));
  });

  test('store all ends of a pass in one indexed item, which is removed after a week', async () => {
    const ref = aRef();
    const records = someRecords(5);
    await write(ref, { schedule: records });
    await store.end(
      ref,
      records.slice(0, 3).map((record) => anEnding(record)),
      NOW,
    );
    await write(ref, { end: records.slice(3).map((record) => anEnding(record, { outcome: 'canceled' })) });
    const items = await endedItems(ref);
    assert.deepEqual(items.map(({ pods }) => (pods as unknown[]).length).toSorted(), [2, 3]);
    for (const item of items) {
      assert.equal(item[TTL_ATTRIBUTE], NOW_SECONDS + HISTORY_DAYS * 24 * 3600);
      assert.match(String(item['clusterKey']), new RegExp(`^HISTORY#${ref.cluster}#[0-7]$`));
    }
    await eventually(async () => {
      const found = await Array.fromAsync(table.table.indexed(String(items[0]?.['clusterKey'])));
      assert.equal(found.length, 2);
    });
  });

  test('give a node a time to live only while nothing on it is live', async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    assert.ok(!(TTL_ATTRIBUTE in (await itemOf(ref, 'NODE'))));
    await write(ref, { node: aNode({ taints: [] }), live: false });
    assert.equal((await itemOf(ref, 'NODE'))[TTL_ATTRIBUTE], NOW_SECONDS + NODE_SECONDS);
    await store.end(ref, [anEnding()], NOW + 5_000);
    assert.equal((await itemOf(ref, 'NODE'))[TTL_ATTRIBUTE], NOW_SECONDS + NODE_SECONDS);
    await write(ref, { schedule: [aRecord()] });
    assert.ok(!(TTL_ATTRIBUTE in (await itemOf(ref, 'NODE'))));
  });

  test('index a node only while it has taints', async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    const tainted = await itemOf(ref, 'NODE');
    assert.match(String(tainted['clusterKey']), new RegExp(`^TAINTED#${ref.cluster}#[0-7]$`));
    assert.equal(tainted['clusterSort'], ref.node);
    await write(ref, { node: aNode({ taints: [] }) });
    const untainted = await itemOf(ref, 'NODE');
    assert.ok(!('clusterKey' in untainted) && !('clusterSort' in untainted));
  });

  test("keep a node's attributes that this release does not know through its commits", async () => {
    const ref = aRef();
    await write(ref, { node: aNode() });
    await table.table.update({ key: { pk: nodeKey(ref), sk: 'NODE' }, set: { fromTheFuture: 'kept' } });
    await write(ref, { node: aNode({ taints: [] }), schedule: [aRecord()], live: false });
    await store.end(ref, [anEnding()], NOW);
    assert.equal((await itemOf(ref, 'NODE'))['fromTheFuture'], 'kept');
    assert.deepEqual((await store.load(ref, NOW)).node, aNode({ taints: [] }));
  });

  for (const chunks of [0, 1, 2]) {
    test(`allow the same change to complete a commit that crashed after chunk ${chunks} of 3`, async () => {
      const ref = aRef();
      await write(ref, { node: aNode({ taints: [] }) });
      const change = { node: aNode(), schedule: someRecords(250), end: [], live: true };
      await crashing('TransactWriteItemsCommand', chunks, () => store.commit(ref, 1, change, NOW));
      const left = await store.load(ref, NOW);
      assert.equal(left.scheduled.size, chunks * 99);
      assert.deepEqual(left.node, aNode({ taints: [] }));
      assert.equal(await store.commit(ref, 1 + chunks, change, NOW), 'committed');
      const { node, scheduled } = await store.load(ref, NOW);
      assert.deepEqual(node, aNode());
      assert.equal(scheduled.size, 250);
    });
  }

  test('treat records as ended whose end crashed before removing them, and no old commit revives them', async () => {
    const ref = aRef();
    const records = someRecords(30);
    await write(ref, { node: aNode(), schedule: records });
    const { revision } = await store.load(ref, NOW);
    const ends = records.map((record) => anEnding(record));
    await crashing('BatchWriteItemCommand', 0, () => store.end(ref, ends, NOW));
    for (const record of records) await recordItem(ref, record);
    const ended = Object.fromEntries(records.map(({ uid }) => [uid, 'evicted']));
    const uids = records.map(({ uid }) => uid);
    assert.deepEqual(outcomesOf(await store.load(ref, NOW)), ended);
    assert.deepEqual(outcomesOf(await store.load(ref, NOW, uids)), ended);
    const change = { schedule: records, end: [], live: true };
    assert.equal(await store.commit(ref, revision, change, NOW), 'conflict');
    await store.end(ref, ends, NOW + 1);
    await assert.rejects(recordItem(ref, aRecord({ uid: uids[0] ?? aRecord().uid })), /no item/);
  });

  test('load completely from a partition of several pages of 1 MB', async () => {
    const ref = aRef();
    const records = someRecords(250, { causes: [aReason('x'.repeat(10_000))] });
    await write(ref, { node: aNode(), schedule: records });
    assert.equal((await store.load(ref, NOW)).scheduled.size, 250);
  });

  test('cost a load only the present items, regardless of the ends of the week before', async () => {
    const ref = aRef();
    const records = someRecords(20);
    await write(ref, { node: aNode(), schedule: records });
    await store.end(ref, [anEnding()], NOW);
    const uids = records.map(({ uid }) => uid);
    const without = await readUnits(() => store.load(ref, NOW));
    const withoutSome = await readUnits(() => store.load(ref, NOW, uids));
    await putEnds(ref, 3_000);
    assert.ok(
      (await readUnits(() => Array.fromAsync(table.table.query(nodeKey(ref), endedSince(0))))) > 3 * without,
    );
    assert.equal(await readUnits(() => store.load(ref, NOW)), without);
    assert.equal(await readUnits(() => store.load(ref, NOW, uids)), withoutSome);
  });

  /** Writes `count` passes that ended one pod each before the window. */
  async function putEnds(ref: NodeRef, count: number): Promise<void> {
    const items = Array.from({ length: count }, (_, index) =>
      endedItem({ ref, at: NOW - ENDED_WINDOW_MS - 1 - index * 10_000, pass: `pass-${index}`, days: 7 }, [
        anEnding(),
      ]),
    );
    for (let from = 0; from < count; from += 25) {
      const puts = items.slice(from, from + 25).map((item) => ({ PutRequest: { Item: toAttributes(item) } }));
      await table.client.send(new BatchWriteItemCommand({ RequestItems: { [table.tableName]: puts } }));
    }
  }

  /**
   * Returns the read units that `work` uses. A stand-in counts one unit per read, so the bytes that it returned also
   * count.
   */
  async function readUnits(work: () => Promise<unknown>): Promise<number> {
    let units = 0;
    table.client.middlewareStack.add(
      (next) => async (args) => {
        const input = { ...args.input, ReturnConsumedCapacity: 'TOTAL' };
        const result = await next({ ...args, input } as typeof args);
        const { ConsumedCapacity, ...answer } = result.output as Answer;
        const counted = [ConsumedCapacity ?? []].flat().map(({ CapacityUnits = 0 }) => CapacityUnits);
        units += Math.max(...counted, JSON.stringify(answer).length / READ_UNIT_BYTES);
        return result;
      },
      { step: 'initialize', name: 'units' },
    );
    try {
      await work();
      return units;
    } finally {
      table.client.middlewareStack.remove('units');
    }
  }

  /** Lets `count` calls of a kind succeed while `work` runs, which fails at the next such call. */
  async function crashing(kind: string, count: number, work: () => Promise<unknown>): Promise<void> {
    let calls = 0;
    table.client.middlewareStack.add(
      (next, context) => async (args) => {
        if (context['commandName'] === kind && calls++ >= count) throw new Error('crashed');
        return next(args);
      },
      { step: 'initialize', name: 'crash' },
    );
    try {
      await assert.rejects(work(), /crashed/);
    } finally {
      table.client.middlewareStack.remove('crash');
    }
  }
});

interface Capacity {
  readonly CapacityUnits?: number;
}

interface Answer {
  readonly ConsumedCapacity?: Capacity | readonly Capacity[];
}
