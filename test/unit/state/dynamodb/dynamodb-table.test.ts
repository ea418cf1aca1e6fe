import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DynamoDbTable, fromAttributes, toAttributes } from '#shared/state/dynamodb/dynamodb-table.ts';
import { inNoTime } from '#test/world/driven-timers.ts';
import { type Answer, type Request, scriptedDynamoDb } from './scripted-dynamodb.ts';

/** Lets `work` talk to a DynamoDB that gives these answers; returns what it was asked. */
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
  test('numbers are written in full', () => {
    assert.deepEqual(toAttributes({ at: 8.64e15 }), { at: { N: '8640000000000000' } });
  });

  test('a field that is undefined is left out', () => {
    assert.deepEqual(toAttributes({ a: undefined, b: { c: undefined, d: 'x' } }), {
      b: { M: { d: { S: 'x' } } },
    });
  });

  test('come back as they were', () => {
    const item = { ...key('x'), list: [1, 'two', { three: 3 }], empty: '', none: [] };
    assert.deepEqual(fromAttributes(toAttributes(item)), item);
  });
});

describe('a batch of reads', () => {
  test('asks again for what DynamoDB left out of its answer, and for nothing twice', async () => {
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

  test('gives up after some time, saying what to do', async (t) => {
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
  test('sets, removes and adds in one expression, whatever the attributes are called', async () => {
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

  test('gives nothing when the stored item is not as expected', async () => {
    await against([{ error: 'ConditionalCheckFailedException' }], async (table) => {
      assert.equal(await table.update({ key: key('x'), set: { a: 1 }, expected: { a: 2 } }), undefined);
    });
  });
});

describe('a batch of deletes', () => {
  const keys = Array.from({ length: 30 }, (_, index) => key(`${index}`));
  const deletes = (of: typeof keys) => ({
    taintward: of.map((each) => ({ DeleteRequest: { Key: toAttributes(each) } })),
  });

  test('goes in chunks, and again for what DynamoDB left out', async () => {
    const answers = [
      { result: {} },
      { result: { UnprocessedItems: deletes(keys.slice(0, 2)) } },
      { result: {} },
    ];
    const requests = await against(answers, (table) => table.batchDelete(keys));
    const asked = requests.map(
      ({ input }) => (input as { RequestItems: { taintward: unknown[] } }).RequestItems,
    );
    assert.deepEqual(
      asked
        .slice(0, 2)
        .map(({ taintward }) => taintward.length)
        .toSorted(),
      [25, 5].toSorted(),
    );
    assert.deepEqual(asked[2], deletes(keys.slice(0, 2)));
  });

  test('tries again when a transaction holds one of the items', async () => {
    const answers = [{ error: 'TransactionConflictException' }, { result: {} }];
    const requests = await against(answers, (table) => table.batchDelete(keys.slice(0, 3)));
    assert.deepEqual(
      requests.map(({ input }) => input),
      Array(2).fill({ RequestItems: deletes(keys.slice(0, 3)) }),
    );
  });
});

test('a number that JavaScript does not hold exactly stays a text, so that its field alone cannot be read', () => {
  for (const text of ['1E+125', '9007199254740993', '-123456789012345678901234567890']) {
    assert.deepEqual(fromAttributes({ at: { N: text }, beside: { N: '1.5' } }), { at: text, beside: 1.5 });
  }
});

test('what people name may be called as a class is', () => {
  const item = { seconds: { constructor: 60, toString: 5 } };
  assert.deepEqual(fromAttributes(toAttributes(item)), item);
});
