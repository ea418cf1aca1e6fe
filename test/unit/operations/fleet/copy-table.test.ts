import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AttributeValue, BatchWriteItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { copyTable } from '#shared/operations/fleet/copy-table.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { fakeClient } from '#test/world/fake-dynamodb.ts';

type Item = Record<string, AttributeValue>;

const MINUTE_MS = 60_000;
const items = (count: number): readonly Item[] =>
  Array.from({ length: count }, (_, index) => toAttributes({ pk: `CLUSTER#${index}`, sk: 'REGISTRATION' }));

/** Two tables: one with these pages of items, and one that leaves this number of items of each batch unprocessed. */
function tables(pages: readonly (readonly Item[])[], leaves: (batch: number) => number = () => 0) {
  const written: Item[] = [];
  let batches = 0;
  const client = fakeClient(async (command) => {
    if (command instanceof ScanCommand) {
      assert.deepEqual([command.input.TableName, command.input.ConsistentRead], ['restored', true]);
      const page = Number(command.input.ExclusiveStartKey?.['page']?.N ?? 0);
      const more = page + 1 < pages.length ? { LastEvaluatedKey: { page: { N: `${page + 1}` } } } : {};
      return { Items: pages[page], ...more };
    }
    assert.ok(command instanceof BatchWriteItemCommand);
    const requests = command.input.RequestItems?.['used'] ?? [];
    assert.ok(requests.length > 0 && requests.length <= 25);
    const kept = Math.min(requests.length, leaves(batches++));
    const done = requests.slice(0, requests.length - kept);
    written.push(...done.map(({ PutRequest }) => PutRequest?.Item ?? {}));
    return { UnprocessedItems: kept > 0 ? { used: requests.slice(-kept) } : {} };
  });
  return { client, written };
}

test('copies all items except leases unchanged, page by page', async () => {
  const lease = toAttributes({ pk: 'LEASE#prod', sk: 'LEASE', epoch: 1 });
  const [first = {}, ...rest] = items(61);
  const { client, written } = tables([[first, lease], [], rest]);
  assert.equal(await copyTable(client, 'restored', 'used'), 61);
  assert.deepEqual(written, [first, ...rest]);
});

test('counts the items of a dry run, and writes none', async () => {
  const lease = toAttributes({ pk: 'LEASE#prod', sk: 'LEASE', epoch: 1 });
  const { client, written } = tables([[...items(3), lease]]);
  assert.equal(await copyTable(client, 'restored', 'used', { dryRun: true }), 3);
  assert.deepEqual(written, []);
});

test('retries unprocessed items until none remain', async (t) => {
  const time = driveTimers(t);
  const { client, written } = tables([items(30)], (batch) => (batch < 12 ? 4 : 0));
  const copied = copyTable(client, 'restored', 'used');
  await time.pass(MINUTE_MS);
  assert.equal(await copied, 30);
  assert.equal(new Set(written.map(({ pk }) => pk?.S)).size, 30);
});

test('reports a table that accepts nothing as throttled after its retries', async (t) => {
  const time = driveTimers(t);
  const { client } = tables([items(1)], () => 1);
  const copied = assert.rejects(copyTable(client, 'restored', 'used'), {
    name: 'StoreError',
    message:
      /^DynamoDB table used is throttled: it did not accept 1 items in 30 attempts\. Try again later\.$/,
  });
  await time.pass(4 * MINUTE_MS);
  await copied;
});

test('names a missing table', async () => {
  const client = fakeClient(async () => {
    throw Object.assign(new Error('not found'), { name: 'ResourceNotFoundException' });
  });
  await assert.rejects(copyTable(client, 'restored', 'used'), {
    name: 'StoreError',
    message: /^DynamoDB table restored .*does not exist/,
  });
});
