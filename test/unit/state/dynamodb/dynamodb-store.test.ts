import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { endedItem } from '#shared/state/dynamodb/history-items.ts';
import { nodeItemKey, scheduledItem, taintedKeys } from '#shared/state/dynamodb/items.ts';
import { aNode, anEnding, aRecord, NOW, someRecords } from '#test/contracts/partition-builders.ts';
import { type Answer, type Request, scriptedDynamoDb } from './scripted-dynamodb.ts';

const REF: NodeRef = { cluster: clusterName('prod'), node: nodeName('node-1') };
const CHANGE = { node: aNode(), schedule: [aRecord()], end: [], live: true };

/** Runs `work` against a DynamoDB with these answers and returns the requests. */
async function against(
  answers: readonly Answer[],
  work: (store: DynamoDbStore) => Promise<void>,
): Promise<readonly Request[]> {
  const { client, requests, close } = await scriptedDynamoDb(answers);
  try {
    await work(new DynamoDbStore(new DynamoDbTable({ client, tableName: 'taintward' })));
    return requests;
  } finally {
    await close();
  }
}

const operations = (requests: readonly Request[]) => requests.map(({ operation }) => operation);

const canceled = (...codes: readonly string[]): Answer => ({
  error: 'TransactionCanceledException',
  fields: { CancellationReasons: codes.map((Code) => ({ Code })) },
});

describe('DynamoDbStore.load', () => {
  test('reads the node first, and everything else in one query', async () => {
    const requests = await against([{ result: {} }], async (store) => {
      await store.load(REF, NOW);
    });
    assert.deepEqual(operations(requests), ['GetItem', 'Query']);
  });

  test('reads, for some pods, the node before their records and recent ends', async () => {
    const requests = await against([{ result: {} }], async (store) => {
      await store.load(REF, NOW, [podUid('a'), podUid('a')]);
    });
    assert.equal(requests[0]?.operation, 'GetItem');
    assert.deepEqual(operations(requests.slice(1)).toSorted(), ['BatchGetItem', 'Query']);
  });

  test('reads only the node for no pods', async () => {
    const requests = await against([{ result: {} }], async (store) => {
      await store.load(REF, NOW, []);
    });
    assert.deepEqual(operations(requests), ['GetItem']);
  });

  test('reads any number of pages', async () => {
    const record = aRecord();
    const done = endedItem({ ref: REF, at: NOW, pass: 'pass', days: 7 }, [anEnding()]);
    const pages = [done, { ...nodeItemKey(REF), revision: 1 }, scheduledItem(REF, record, NOW)];
    const answers = pages.map((item, index) => ({
      result: {
        Items: [toAttributes(item)],
        ...(index < 2 ? { LastEvaluatedKey: toAttributes(nodeItemKey(REF)) } : {}),
      },
    }));
    await against([{ result: {} }, ...answers], async (store) => {
      const { scheduled, ended } = await store.load(REF, NOW);
      assert.deepEqual([...scheduled.values()], [record]);
      assert.equal(ended.size, 1);
    });
  });

  test('rejects an unreadable item and names the item and field', async () => {
    const Item = toAttributes({
      ...nodeItemKey(REF),
      ...aNode(),
      revision: 1,
      version: { epoch: 'one', sequence: 1 },
    });
    await against([{ result: { Item } }], (store) =>
      assert.rejects(store.load(REF, NOW), {
        name: 'StoreError',
        message: /^The stored item NODE of prod#node-1 cannot be read \(version\.epoch: /,
      }),
    );
  });
});

describe('DynamoDbStore.commit', () => {
  for (const codes of [
    ['ConditionalCheckFailed', 'None'],
    ['TransactionConflict', 'None'],
    ['None', 'TransactionConflict'],
  ]) {
    test(`reports a conflict when the transaction is canceled for ${codes}`, async () => {
      const requests = await against([canceled(...codes)], async (store) => {
        assert.equal(await store.commit(REF, 1, CHANGE, NOW), 'conflict');
      });
      assert.deepEqual(operations(requests), ['TransactWriteItems']);
    });
  }

  test("sets a node's time to live only if nothing is live on it", async () => {
    for (const live of [true, false]) {
      const [{ input } = assert.fail('nothing was asked')] = await against(
        [{ result: {} }],
        async (store) => {
          await store.commit(REF, 1, { ...CHANGE, live }, NOW);
        },
      );
      const { Update } = (input as { TransactItems: [{ Update: { UpdateExpression: string } }] })
        .TransactItems[0];
      assert.match(Update.UpdateExpression, live ? /REMOVE[^=]*#ttl/ : /SET.*#ttl = :ttl/);
    }
  });

  test('updates the node only with the last of many records, so that a retried delta completes an interrupted commit', async () => {
    const requests = await against([{ result: {} }], async (store) => {
      await store.commit(REF, 1, { ...CHANGE, schedule: someRecords(150) }, NOW);
    });
    const changes = requests.map(({ input }) => {
      const { TransactItems } = input as { TransactItems: { Update?: { UpdateExpression: string } }[] };
      return /#taints/.test(TransactItems[0]?.Update?.UpdateExpression ?? '');
    });
    assert.deepEqual(changes, [false, true]);
  });

  test('reports a conflict while an earlier attempt of the call is in progress', async () => {
    await against([{ error: 'TransactionInProgressException' }], async (store) => {
      assert.equal(await store.commit(REF, 1, CHANGE, NOW), 'conflict');
    });
  });

  test('fails when the transaction is canceled for another reason', async () => {
    await against([canceled('ThrottlingError', 'None')], (store) =>
      assert.rejects(store.commit(REF, 1, CHANGE, NOW), {
        name: 'StoreError',
        message: /^DynamoDB table taintward is throttled .* raise the table's limits/,
      }),
    );
  });

  test('writes no further chunk after a conflict', async () => {
    const answers = [{ result: {} }, canceled('ConditionalCheckFailed'), { result: {} }];
    const requests = await against(answers, async (store) => {
      const change = { ...CHANGE, schedule: someRecords(250) };
      assert.equal(await store.commit(REF, 1, change, NOW), 'conflict');
    });
    assert.equal(requests.length, 2);
  });

  test('limits transactions to 100 actions and deletes records in the transaction that records their end', async () => {
    const end = someRecords(130).map((record) => anEnding(record));
    const requests = await against([{ result: {} }], async (store) => {
      await store.commit(REF, 1, { ...CHANGE, schedule: someRecords(130), end }, NOW);
    });
    const transactions = requests.map(({ input }) => (input as { TransactItems: Action[] }).TransactItems);
    const deleted: string[] = [];
    for (const actions of transactions) {
      assert.ok(actions.length <= 100, `${actions.length} actions`);
      const ended = actions.flatMap(({ Put }) => Put?.Item['pods']?.L?.map(({ M }) => M.uid.S) ?? []);
      const here = actions.flatMap(({ Delete }) => Delete?.Key['sk']?.S.replace('SCHEDULED#', '') ?? []);
      assert.deepEqual(here, ended);
      deleted.push(...here);
    }
    assert.deepEqual(
      deleted,
      end.map(({ uid }) => uid),
    );
  });
});

/** The fields of a transaction's action that the test reads. */
interface Action {
  readonly Put?: { readonly Item: Record<string, { readonly L?: { readonly M: { uid: { S: string } } }[] }> };
  readonly Delete?: { readonly Key: Record<string, { readonly S: string }> };
}

describe('DynamoDbStore.end', () => {
  const ends = someRecords(60).map((record) => anEnding(record));

  test('writes the ends in one item, increments the revision, and then deletes the records, 25 at a time', async () => {
    const requests = await against([{ result: {} }], (store) => store.end(REF, ends, NOW));
    const deletes = Array(3).fill('BatchWriteItem');
    assert.deepEqual(operations(requests), ['PutItem', 'UpdateItem', ...deletes]);
  });

  test('retries while a transaction locks the node', async () => {
    const held: Answer = { error: 'TransactionConflictException' };
    const requests = await against([{ result: {} }, held, held, { result: {} }], (store) =>
      store.end(REF, ends.slice(0, 1), NOW),
    );
    const raises = Array(3).fill('UpdateItem');
    assert.deepEqual(operations(requests), ['PutItem', ...raises, 'BatchWriteItem']);
  });

  for (const [failing, answers] of [
    ['PutItem', []],
    ['UpdateItem', [{ result: {} }]],
  ] as const) {
    test(`deletes nothing when ${failing} fails`, async () => {
      const requests = await against([...answers, { error: 'ValidationException' }], (store) =>
        assert.rejects(store.end(REF, ends, NOW), { name: 'StoreError' }),
      );
      assert.equal(operations(requests).at(-1), failing);
    });
  }
});

describe('DynamoDbStore.taintedNodes', () => {
  test('omits nodes that the index still lists but the table no longer holds as tainted', async () => {
    const key = nodeItemKey(REF);
    const untainted = toAttributes({ ...key, ...aNode({ taints: [] }), revision: 2 });
    const [clusterKey] = taintedKeys(REF.cluster);
    const answers = [
      { result: { Items: [toAttributes({ ...key, clusterKey, clusterSort: 'node-1' })] } },
      { result: { Responses: { taintward: [untainted] } } },
      { result: {} },
    ];
    const requests = await against(answers, async (store) => {
      assert.deepEqual(await Array.fromAsync(store.taintedNodes(REF.cluster)), []);
    });
    assert.deepEqual(operations(requests).slice(0, 3), ['Query', 'BatchGetItem', 'Query']);
  });
});

describe('a failing DynamoDbStore reports cause and remedy', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'ResourceNotFoundException',
      /^DynamoDB table taintward \(or its index\) does not exist .*\. Deploy the stack/,
    ],
    [
      'AccessDeniedException',
      /^AWS denies access to DynamoDB table taintward \(.*\)\. Check the credentials/,
    ],
    [
      'UnrecognizedClientException',
      /^AWS denies access to DynamoDB table taintward \(.*\)\. Check the credentials/,
    ],
    [
      'ProvisionedThroughputExceededException',
      /^DynamoDB table taintward is throttled .* raise the table's limits/,
    ],
    ['ValidationException', /^DynamoDB table taintward rejects the call \(ValidationException: no\)\./],
  ];
  for (const [error, message] of cases) {
    test(`after ${error}, in every method`, async () => {
      const expected = { name: 'StoreError', message };
      await against([{ error }], async (store) => {
        await assert.rejects(store.load(REF, NOW), expected);
        await assert.rejects(store.commit(REF, 0, CHANGE, NOW), expected);
        await assert.rejects(store.end(REF, [anEnding()], NOW), expected);
        await assert.rejects(Array.fromAsync(store.taintedNodes(REF.cluster)), expected);
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
    const store = new DynamoDbStore(new DynamoDbTable({ client, tableName: 'taintward' }));
    await assert.rejects(store.load(REF, NOW), {
      name: 'StoreError',
      message: /^No AWS credentials for DynamoDB table taintward \(.*\)\. Give the process a role/,
    });
  });

  for (const [error, message] of [
    [
      'Region is missing',
      'No AWS region for DynamoDB table taintward. Set AWS_REGION, or set AWS_PROFILE to a profile with a region.',
    ],
    [
      'Region not accepted: region="us east" is not a valid hostname component.',
      'The AWS region for DynamoDB table taintward is invalid. Correct AWS_REGION, or the region of the profile.',
    ],
  ] as const) {
    test(`without a usable region: ${error}`, async () => {
      const region = async () => {
        throw new Error(error);
      };
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
      const client = new DynamoDBClient({ region, credentials });
      const store = new DynamoDbStore(new DynamoDbTable({ client, tableName: 'taintward' }));
      await assert.rejects(store.load(REF, NOW), { name: 'StoreError', message });
    });
  }

  test('without a home directory, where the SDK looks for its configuration', async () => {
    const credentials = async () => {
      throw new Error('A system error occurred: uv_os_homedir returned ENOENT (no such file or directory)');
    };
    const client = new DynamoDBClient({ region: 'us-east-1', credentials });
    const store = new DynamoDbStore(new DynamoDbTable({ client, tableName: 'taintward' }));
    await assert.rejects(store.load(REF, NOW), {
      name: 'StoreError',
      message:
        'No AWS configuration for DynamoDB table taintward: this user has no home directory. Set HOME.',
    });
  });

  test('without a listener at the endpoint', async () => {
    const { client, close } = await scriptedDynamoDb([]);
    await close();
    const store = new DynamoDbStore(new DynamoDbTable({ client, tableName: 'taintward' }));
    await assert.rejects(store.load(REF, NOW), {
      name: 'StoreError',
      message: /^DynamoDB table taintward cannot be reached \(.*\)\. Check the region, the endpoint/,
    });
  });
});
