import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import { toItem } from '#shared/store/attribute-values.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { evictionItem, nodeItemKey } from '#shared/store/items.ts';
import { StoreError } from '#shared/store/store.ts';
import { aNode, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { type Answer, type Request, scriptedDynamoDb } from './scripted-dynamodb.ts';

const REF: NodeRef = { cluster: clusterName('prod'), node: nodeName('node-1') };
const CHANGE = { node: aNode(), evictions: [aRecord()], live: true };

/** Lets `work` talk to a DynamoDB that gives these answers; returns what it was asked. */
async function against(
  answers: readonly Answer[],
  work: (store: DynamoDbStore) => Promise<void>,
): Promise<readonly Request[]> {
  const { client, requests, close } = await scriptedDynamoDb(answers);
  try {
    await work(new DynamoDbStore({ client, tableName: 'taintward' }));
    return requests;
  } finally {
    await close();
  }
}

const operations = (requests: readonly Request[]) => requests.map(({ operation }) => operation);

const cancelled = (...codes: readonly string[]): Answer => ({
  error: 'TransactionCanceledException',
  fields: { CancellationReasons: codes.map((Code) => ({ Code })) },
});

describe('DynamoDbStore.load', () => {
  test('reads the node before its records, in every scope', async () => {
    for (const scope of [{ kind: 'all' }, { kind: 'due', now: NOW }] as const) {
      const requests = await against([{ result: {} }], async (store) => {
        await store.load(REF, scope);
      });
      assert.deepEqual(operations(requests), ['GetItem', 'Query']);
    }
    const requests = await against([{ result: {} }], async (store) => {
      await store.load(REF, { kind: 'pods', uids: [podUid('a'), podUid('a')] });
    });
    assert.deepEqual(operations(requests), ['GetItem', 'BatchGetItem']);
  });

  test('asks again for the items that DynamoDB left out of its answer', async () => {
    const [first, second] = [aRecord(), aRecord()];
    const left = { taintward: { Keys: [toItem({ pk: 'prod#node-1', sk: `EVICTION#${second.uid}` })] } };
    const answers = [
      { result: {} },
      { result: { Responses: { taintward: [evictionItem(REF, first, NOW)] }, UnprocessedKeys: left } },
      { result: { Responses: {}, UnprocessedKeys: left } },
      { result: { Responses: { taintward: [evictionItem(REF, second, NOW)] }, UnprocessedKeys: {} } },
    ];
    const requests = await against(answers, async (store) => {
      const { evictions } = await store.load(REF, { kind: 'pods', uids: [first.uid, second.uid] });
      assert.deepEqual([...evictions.values()], [first, second]);
    });
    assert.deepEqual(operations(requests), ['GetItem', 'BatchGetItem', 'BatchGetItem', 'BatchGetItem']);
    for (const { input } of requests.slice(2)) {
      assert.deepEqual(input, {
        RequestItems: { taintward: { Keys: left.taintward.Keys, ConsistentRead: true } },
      });
    }
  });

  test('refuses an item that cannot be read, naming it and the field', async () => {
    const item = { ...nodeItemKey(REF), ...toItem({ ...aNode(), revision: 1, version: { epoch: 'one' } }) };
    await against([{ result: { Item: item } }], (store) =>
      assert.rejects(store.load(REF, { kind: 'all' }), (error) => {
        assert.ok(error instanceof StoreError);
        assert.match(error.message, /^The stored item NODE of prod#node-1 cannot be read \(version\.epoch: /);
        return true;
      }),
    );
  });
});

describe('DynamoDbStore.commit', () => {
  for (const codes of [
    ['ConditionalCheckFailed', 'None'],
    ['None', 'ConditionalCheckFailed'],
    ['TransactionConflict', 'None'],
    ['None', 'TransactionConflict'],
  ]) {
    test(`is a conflict when the transaction is cancelled for ${codes}`, async () => {
      const requests = await against([cancelled(...codes)], async (store) => {
        assert.equal(await store.commit(REF, 1, CHANGE, NOW), 'conflict');
      });
      assert.deepEqual(operations(requests), ['TransactWriteItems']);
    });
  }

  test('is a conflict while an earlier attempt of the same call is still under way', async () => {
    await against([{ error: 'TransactionInProgressException' }], async (store) => {
      assert.equal(await store.commit(REF, 1, CHANGE, NOW), 'conflict');
    });
  });

  test('fails when the transaction is cancelled for another reason', async () => {
    await against([cancelled('ThrottlingError', 'None')], (store) =>
      assert.rejects(store.commit(REF, 1, CHANGE, NOW), {
        name: 'StoreError',
        message: /^DynamoDB table taintward takes no more for now: .* raise the table's limits/,
      }),
    );
  });

  test('writes no further chunk after a conflict', async () => {
    const evictions = Array.from({ length: 250 }, () => aRecord());
    const answers = [{ result: {} }, cancelled('ConditionalCheckFailed'), { result: {} }];
    const requests = await against(answers, async (store) => {
      assert.equal(await store.commit(REF, 1, { ...CHANGE, evictions }, NOW), 'conflict');
    });
    assert.equal(requests.length, 2);
  });
});

describe('DynamoDbStore.settle', () => {
  const outcomes = [{ uid: podUid('a'), state: 'done' }] as const;

  test('tries again a record that a transaction holds', async () => {
    const held: Answer = { error: 'TransactionConflictException' };
    const requests = await against([held, held, { result: {} }], async (store) => {
      assert.deepEqual(await store.settle(REF, outcomes, NOW), new Set(['a']));
    });
    assert.equal(requests.length, 3);
  });

  test('leaves out a record that is not scheduled any more', async () => {
    await against([{ error: 'ConditionalCheckFailedException' }], async (store) => {
      assert.deepEqual(await store.settle(REF, outcomes, NOW), new Set());
    });
  });
});

describe('DynamoDbStore.taintedNodes', () => {
  test('leaves out what the index still names and the table no longer holds as tainted', async () => {
    const key = nodeItemKey(REF);
    const untainted = { ...key, ...toItem({ ...aNode({ taints: [] }), revision: 2 }) };
    const answers = [
      { result: { Items: [{ ...key, ...toItem({ duePk: 'TAINTED#prod', dueSk: 'node-1' }) }] } },
      { result: { Responses: { taintward: [untainted] } } },
    ];
    const requests = await against(answers, async (store) => {
      assert.deepEqual(await Array.fromAsync(store.taintedNodes(REF.cluster)), []);
    });
    assert.deepEqual(operations(requests), ['Query', 'BatchGetItem']);
  });
});

describe('a DynamoDbStore that cannot do its work says why and what to do', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'ResourceNotFoundException',
      /^DynamoDB table taintward \(or its index\) does not exist .*: deploy the stack/,
    ],
    ['AccessDeniedException', /^AWS refuses the call to DynamoDB table taintward: check the credentials/],
    [
      'UnrecognizedClientException',
      /^AWS refuses the call to DynamoDB table taintward: check the credentials/,
    ],
    [
      'ProvisionedThroughputExceededException',
      /^DynamoDB table taintward takes no more for now: .* raise the table's limits/,
    ],
    ['ValidationException', /^DynamoDB table taintward refuses the call: .*\(ValidationException: no\)/],
  ];
  for (const [error, message] of cases) {
    test(`after ${error}, in every method`, async () => {
      const expected = { name: 'StoreError', message };
      await against([{ error }], async (store) => {
        await assert.rejects(store.load(REF, { kind: 'all' }), expected);
        await assert.rejects(store.commit(REF, 0, CHANGE, NOW), expected);
        await assert.rejects(store.settle(REF, [{ uid: podUid('a'), state: 'done' }], NOW), expected);
        await assert.rejects(Array.fromAsync(store.taintedNodes(REF.cluster)), expected);
        await assert.rejects(Array.fromAsync(store.upcoming()), expected);
      });
    });
  }

  test('without credentials', async () => {
    const client = new DynamoDBClient({
      region: 'us-east-1',
      credentials: async () => {
        throw Object.assign(new Error('Could not load credentials from any providers'), {
          name: 'CredentialsProviderError',
        });
      },
    });
    const store = new DynamoDbStore({ client, tableName: 'taintward' });
    await assert.rejects(store.load(REF, { kind: 'all' }), {
      name: 'StoreError',
      message: /^No AWS credentials for DynamoDB table taintward: give the process a role/,
    });
  });

  test('when nothing listens at the endpoint', async () => {
    const { client, close } = await scriptedDynamoDb([]);
    await close();
    const store = new DynamoDbStore({ client, tableName: 'taintward' });
    await assert.rejects(store.load(REF, { kind: 'all' }), {
      name: 'StoreError',
      message: /^DynamoDB table taintward cannot be reached: check the endpoint/,
    });
  });
});
