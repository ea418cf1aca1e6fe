import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromAttributes, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { inNoTime } from '#test/world/driven-timers.ts';
import { type Answer, type Request, scriptedDynamoDb } from './scripted-dynamodb.ts';

/** Runs `work` against a DynamoDB with these answers and returns the requests. */
async function against(
  answers: readonly Answer[],
  work: (table: DynamoDbTable) => Promise<void>,
): Promise<readonly Request[]> {
  const { client, requests, close } = await scriptedDynamoDb(answers);
  try {
    await work(new DynamoDbTable({ client, tableName: 'taintward' }));
    return requests;
  } finally {
    await close();
  }
}

const key = (sk: string) => ({ pk: 'c#n', sk });

describe('plain values as attributes', () => {
  test('contain numbers in full', () => {
    assert.deepEqual(toAttributes({ at: 8.64e15 }), { at: { N: '8640000000000000' } });
  });

  test('omit undefined fields', () => {
    assert.deepEqual(toAttributes({ a: undefined, b: { c: undefined, d: 'x' } }), {
      b: { M: { d: { S: 'x' } } },
    });
  });

  test('read back unchanged', () => {
    const item = { ...key('x'), list: [1, 'two', { three: 3 }], empty: '', none: [] };
    assert.deepEqual(fromAttributes(toAttributes(item)), item);
  });
});

describe('a batch of reads', () => {
  test('requests unprocessed keys again, and no key twice', async () => {
    const [one, two] = [toAttributes(key('1')), toAttributes(key('2'))];
    const left = { taintward: { Keys: [two] } };
    const answers = [
      { result: { Responses: { taintward: [one] }, UnprocessedKeys: left } },
      { result: { Responses: {}, UnprocessedKeys: left } },
      { result: { Responses: { taintward: [two] }, UnprocessedKeys: {} } },
    ];
    const requests = await against(answers, async (table) => {
      const found = await Array.fromAsync(table.batchGet([key('1'), key('2'), key('1')]));
      assert.deepEqual(found, [key('1'), key('2')]);
    });
    assert.deepEqual(
      requests.map(({ input }) => input),
      [[one, two], [two], [two]].map((Keys) => ({
        RequestItems: { taintward: { Keys, ConsistentRead: true } },
      })),
    );
  });

  test('fails after several attempts with a remedy', async (t) => {
    const left = { taintward: { Keys: [toAttributes(key('1'))] } };
    const answer = { result: { Responses: {}, UnprocessedKeys: left } };
    const requests = await inNoTime(t, () =>
      against([answer], (table) =>
        assert.rejects(Array.fromAsync(table.batchGet([key('1')])), {
          name: 'StoreError',
          message:
            /^DynamoDB table taintward left out 1 items of a batch in 10 attempts: .* raise its limits/,
        }),
      ),
    );
    assert.equal(requests.length, 10);
  });
});

describe('an update', () => {
  test('sets, removes, and adds in one expression, whatever the attribute names', async () => {
    const set = { holder: 'a', expiresAt: undefined };
    const [request] = await against([{ result: {} }], async (table) => {
      await table.update({
        key: key('x'),
        set,
        add: { epoch: 1 },
        expected: { holder: 'b', epoch: undefined },
      });
    });
    assert.deepEqual(request?.input, {
      TableName: 'taintward',
      Key: toAttributes(key('x')),
      UpdateExpression: 'SET #holder = :holder REMOVE #expiresAt ADD #epoch :add_epoch',
      ConditionExpression: '#holder = :expected_holder AND attribute_not_exists(#epoch)',
      ExpressionAttributeNames: { '#holder': 'holder', '#expiresAt': 'expiresAt', '#epoch': 'epoch' },
      ExpressionAttributeValues: toAttributes({ ':holder': 'a', ':add_epoch': 1, ':expected_holder': 'b' }),
      ReturnValues: 'ALL_NEW',
    });
  });

  test('has no clause and no condition without content, which DynamoDB rejects', async () => {
    const [request] = await against([{ result: {} }], async (table) => {
      await table.update({ key: key('x'), set: { holder: 'a' } });
    });
    assert.deepEqual(request?.input, {
      TableName: 'taintward',
      Key: toAttributes(key('x')),
      UpdateExpression: 'SET #holder = :holder',
      ExpressionAttributeNames: { '#holder': 'holder' },
      ExpressionAttributeValues: toAttributes({ ':holder': 'a' }),
      ReturnValues: 'ALL_NEW',
    });
  });

  test('returns nothing if the stored item is not as expected', async () => {
    await against([{ error: 'ConditionalCheckFailedException' }], async (table) => {
      assert.equal(await table.update({ key: key('x'), set: { a: 1 }, expected: { a: 2 } }), undefined);
    });
  });
});

describe('a batch of deletes', () => {
  const keys = Array.from({ length: 30 }, (_, index) => key(`${index}`));
  const deletes = (deleted: typeof keys) => ({
    taintward: deleted.map((each) => ({ DeleteRequest: { Key: toAttributes(each) } })),
  });

  test('is split into chunks and repeated for unprocessed items', async () => {
    const answers = [
      { result: {} },
      { result: { UnprocessedItems: deletes(keys.slice(0, 2)) } },
      { result: {} },
    ];
    const requests = await against(answers, (table) => table.batchDelete(keys));
    const batches = requests.map(
      ({ input }) => (input as { RequestItems: { taintward: unknown[] } }).RequestItems,
    );
    assert.deepEqual(
      batches
        .slice(0, 2)
        .map(({ taintward }) => taintward.length)
        .toSorted(),
      [25, 5].toSorted(),
    );
    assert.deepEqual(batches[2], deletes(keys.slice(0, 2)));
  });

  test('retries when a transaction locks an item', async () => {
    const answers = [{ error: 'TransactionConflictException' }, { result: {} }];
    const requests = await against(answers, (table) => table.batchDelete(keys.slice(0, 3)));
    assert.deepEqual(
      requests.map(({ input }) => input),
      Array(2).fill({ RequestItems: deletes(keys.slice(0, 3)) }),
    );
  });
});

test("keeps a number that JavaScript can't represent exactly as a string, so that only its field is unreadable", () => {
  for (const text of ['1E+125', '9007199254740993', '-123456789012345678901234567890']) {
    assert.deepEqual(fromAttributes({ at: { N: text }, beside: { N: '1.5' } }), { at: text, beside: 1.5 });
  }
  assert.deepEqual(fromAttributes({ last: { N: '9007199254740991' } }), { last: Number.MAX_SAFE_INTEGER });
});

test('reads names that are properties of every object', () => {
  const item = { seconds: { constructor: 60, toString: 5 } };
  assert.deepEqual(fromAttributes(toAttributes(item)), item);
});
