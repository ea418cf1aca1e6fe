import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { fromAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { FakeDynamoDb, fakeClient, NO_WHIMS, type Whims } from '#test/world/fake-dynamodb.ts';

const tableOf = (fake: FakeDynamoDb) =>
  new DynamoDbTable({ client: fakeClient(async (command) => fake.perform(command)), tableName: 'table' });

function freshTable(whims?: Partial<Whims>) {
  return tableOf(new FakeDynamoDb({ now: () => Date.now() }, { ...NO_WHIMS, ...whims }));
}

/** Returns a function that returns `true` on every `times`-th call. */
function nowAndThen(times: number): () => boolean {
  let calls = 0;
  return () => ++calls % times === 0;
}

const close = async () => undefined;

storeContract('DynamoDbStore over the fake DynamoDB', async () => ({
  store: new DynamoDbStore(freshTable()),
  close,
}));
storeContract('DynamoDbStore over a fake DynamoDB with short pages and batches', async () => ({
  store: new DynamoDbStore(freshTable({ pageItems: () => 1, leavesOut: nowAndThen(150) })),
  close,
}));
for (const [what, whims] of [
  ['the fake DynamoDB', {}],
  ['a fake DynamoDB with short pages and batches', { pageItems: () => 1, leavesOut: nowAndThen(150) }],
] as const) {
  historyContract(`DynamoDbHistory over ${what}`, async () => {
    const table = freshTable(whims);
    const history = new DynamoDbHistory(table);
    return { store: new DynamoDbStore(table), history, notes: history, close };
  });
}
leaseContract('DynamoDbLeases over the fake DynamoDB', async () => ({
  leases: new DynamoDbLeases(freshTable()),
  close,
}));

test('updates the index with a lag', async () => {
  let now = 0;
  const store = new DynamoDbStore(
    tableOf(new FakeDynamoDb({ now: () => now }, { ...NO_WHIMS, indexLagMs: () => 100 })),
  );
  const ref = aRef();
  await store.commit(ref, 0, { node: aNode(), schedule: [], end: [], live: true }, now);
  assert.deepEqual(await Array.fromAsync(store.taintedNodes(ref.cluster)), []);
  now = 100;
  assert.equal((await Array.fromAsync(store.taintedNodes(ref.cluster))).length, 1);
});

test('removes only items whose time to live has expired, with a lag', async () => {
  let now = 0;
  const fake = new FakeDynamoDb({ now: () => now }, { ...NO_WHIMS, removalLagMs: () => 60_000 });
  const store = new DynamoDbStore(tableOf(fake));
  const ref = aRef();
  const [early, late] = [aRecord({ dueAt: 0 }), aRecord({ dueAt: 3_600_000 })];
  await store.commit(ref, 0, { node: aNode(), schedule: [early, late], end: [], live: true }, now);
  now = 24 * 3_600_000;
  assert.deepEqual(fake.sweep(), []);
  now += 60_000;
  assert.deepEqual(
    fake.sweep().map((item) => fromAttributes(item)['sk']),
    [`SCHEDULED#${early.uid}`],
  );
  const { scheduled } = await store.load(ref, now);
  assert.deepEqual([...scheduled.keys()], [late.uid]);
});
