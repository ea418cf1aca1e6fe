import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { type ConsumerDeps, type Consumption, consume, type ReceivedMessage } from '#shared/aws/consume.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { QueueError } from '#shared/state/sender.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

const REQUEST = { awsRequestId: 'r1' } as Context;

interface Bench extends ConsumerDeps {
  readonly deadLetters: ScriptedQueue;
  /** The messages that are to be redelivered, and after how many seconds. */
  readonly retried: (readonly { readonly receiptHandle: string; readonly seconds: number }[])[];
  readonly lines: Record<string, unknown>[];
  flushed: number;
}

function bench(): Bench {
  const lines: Record<string, unknown>[] = [];
  const given: Bench = {
    lines,
    retried: [],
    flushed: 0,
    deadLetters: new ScriptedQueue(),
    visibility: { retryIn: async (messages) => void given.retried.push(messages) },
    log: jsonLog({ write: (line: string) => lines.push(JSON.parse(line)) }),
    metrics: {
      put: () => undefined,
      flush: () => {
        given.flushed += 1;
      },
    },
  };
  return given;
}

const texts = (perform: (text: string) => Promise<void>): Consumption<string> => ({
  parse: (body) => body,
  perform: async (text) => {
    await perform(text);
    return undefined;
  },
  deadlineMs: 1000,
  retrySeconds: () => 1,
  about: (text) => ({ cluster: clusterName('c1'), node: nodeName(text) }),
});

test('logs the message ID with every line about a message', async () => {
  const given = bench();
  const { log, lines } = given;
  const handler = consume(
    texts(async (text) => {
      await new Promise(setImmediate);
      log.info('cluster.removed', { cluster: clusterName(text) });
    }),
    given,
  );
  await handler(
    sqsEvent(sqsRecord('one', { messageId: 'm1' }), sqsRecord('two', { messageId: 'm2' })),
    REQUEST,
  );
  assert.deepEqual(
    lines.map(({ cluster, messageId, requestId }) => [cluster, messageId, requestId]),
    [
      ['one', 'm1', undefined],
      ['two', 'm2', undefined],
    ],
  );
});

test('logs the request ID with lines about no message, before and after the messages', async () => {
  const given = bench();
  const logged = (cluster: string) => given.log.info('cluster.removed', { cluster: clusterName(cluster) });
  const handler = consume(
    texts(async () => undefined),
    { ...given, invoked: () => logged('before'), notices: { flush: async () => logged('after') } },
  );
  await handler(sqsEvent(sqsRecord('one')), REQUEST);
  assert.deepEqual(
    given.lines.map(({ cluster, requestId }) => [cluster, requestId]),
    [
      ['before', 'r1'],
      ['after', 'r1'],
    ],
  );
});

test('announces an invocation before its messages are handled', async () => {
  const order: string[] = [];
  const handler = consume(
    texts(async (text) => void order.push(text)),
    { ...bench(), invoked: () => void order.push('invoked') },
  );
  await handler(sqsEvent(sqsRecord('one')), REQUEST);
  await handler(sqsEvent(sqsRecord('two')), REQUEST);
  assert.deepEqual(order, ['invoked', 'one', 'invoked', 'two']);
});

test('flushes metrics at the end of each invocation, after any failure', async () => {
  const given = bench();
  const handler = consume(
    texts(async () => {
      throw new Error('no');
    }),
    given,
  );
  const response = await handler(sqsEvent(sqsRecord('one', { messageId: 'm1' })), REQUEST);
  assert.deepEqual(response, { batchItemFailures: [{ itemIdentifier: 'm1' }] });
  assert.equal(given.flushed, 1);
});

for (const [what, groups, ordered] of [
  ['messages of one group of a standard queue', ['a', 'a'], {}],
  ['the groups of a FIFO queue', ['a', 'b'], { joins: () => false }],
] as const)
  test(`handles ${what} concurrently`, async () => {
    const { promise: both, resolve } = Promise.withResolvers<void>();
    let arrived = 0;
    const work = async () => {
      arrived += 1;
      if (arrived === 2) resolve();
      await both;
    };
    const handler = consume({ ...texts(work), ...ordered }, bench());
    const records = groups.map((groupId, nth) => sqsRecord('text', { messageId: `m${nth}`, groupId }));
    assert.deepEqual(await handler(sqsEvent(...records), REQUEST), { batchItemFailures: [] });
  });

test('handles a message of a group after the end of the message before it', async () => {
  const steps: string[] = [];
  const work = async (text: string) => {
    steps.push(`${text} begins`);
    await new Promise(setImmediate);
    steps.push(`${text} ends`);
  };
  const handler = consume({ ...texts(work), joins: () => false }, bench());
  const records = ['one', 'two'].map((text) => sqsRecord(text, { messageId: text, groupId: 'a' }));
  await handler(sqsEvent(...records), REQUEST);
  assert.deepEqual(steps, ['one begins', 'one ends', 'two begins', 'two ends']);
});

test('flushes notices in a function without metrics', async () => {
  const { metrics: _metrics, ...given } = bench();
  let reported = 0;
  const notices = {
    flush: async () => {
      reported += 1;
    },
  };
  for (const more of [{}, { metrics: { put: () => undefined } }, { notices }])
    await consume(
      texts(async () => undefined),
      { ...given, ...more },
    )(sqsEvent(sqsRecord('one')), REQUEST);
  assert.equal(reported, 1);
});

test('passes the delivery of a message to its work', async () => {
  const deliveries: ReceivedMessage[] = [];
  const handler = consume(
    { ...texts(async () => undefined), perform: async (_, delivery) => void deliveries.push(delivery) },
    bench(),
  );
  await handler(sqsEvent(sqsRecord('one', { receives: 3, senderId: 'AROA:relay', groupId: 'g' })), REQUEST);
  await handler(sqsEvent(sqsRecord('two')), REQUEST);
  const ids = { messageId: 'm1', receiptHandle: 'm1' };
  assert.partialDeepStrictEqual(deliveries, [
    { ...ids, receives: 3, senderId: 'AROA:relay', groupId: 'g', body: 'one' },
    { ...ids, receives: 1, senderId: 'test', groupId: undefined, body: 'two' },
  ]);
});

test('logs the delta ID, which the relay also logs, instead of the message ID', async () => {
  const given = bench();
  const { log, lines } = given;
  const handler = consume(
    {
      ...texts(async (text) => log.info('cluster.removed', { cluster: clusterName(text) })),
      about: (text) => ({
        cluster: clusterName('c1'),
        node: nodeName('n1'),
        ...(text === 'delta' ? { delta: '7-40' } : {}),
      }),
    },
    given,
  );
  await handler(sqsEvent(sqsRecord('delta'), sqsRecord('other', { messageId: 'm2' })), REQUEST);
  assert.deepEqual(
    lines.map(({ messageId, delta }) => [messageId, delta]),
    [
      [undefined, '7-40'],
      ['m2', undefined],
    ],
  );
});

describe('a failed message', () => {
  const failing: Consumption<string> = {
    ...texts(async (text) => {
      if (text.startsWith('bad')) throw new Error(`${text} failed`);
    }),
    retrySeconds: (receives) => 10 * receives,
  };

  test('is redelivered when its work throws, unlike the others of its batch, also where nothing is counted', async () => {
    const { metrics: _metrics, ...given } = bench();
    const records = [
      sqsRecord('good', { messageId: 'm1' }),
      sqsRecord('bad', { messageId: 'm2', receives: 3 }),
      sqsRecord('bad for now', { messageId: 'm3' }),
    ];
    const response = await consume(failing, given)(sqsEvent(...records), REQUEST);
    assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm2' }, { itemIdentifier: 'm3' }]);
    assert.deepEqual(given.retried, [
      [
        { receiptHandle: 'm2', seconds: 30 },
        { receiptHandle: 'm3', seconds: 10 },
      ],
    ]);
  });

  test('is logged with its node and its receive count', async () => {
    const given = bench();
    await consume(failing, given)(sqsEvent(sqsRecord('bad', { receives: 3 })), REQUEST);
    const [line, ...more] = given.lines;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [
        line?.['level'],
        line?.['event'],
        line?.['cluster'],
        line?.['node'],
        line?.['receiveCount'],
        line?.['error'],
      ],
      ['warn', 'message.retrying', 'c1', 'bad', 3, 'bad failed'],
    );
  });

  test('is the only reason to change a visibility timeout', async () => {
    const given = bench();
    await consume({ ...failing, retrySeconds: () => 10 }, given)(sqsEvent(sqsRecord('good')), REQUEST);
    assert.deepEqual(given.retried, []);
  });

  test('returns the rest of an ordered group to the queue, without an effect on other groups', async () => {
    const performed: string[] = [];
    const handler = consume(
      {
        ...failing,
        joins: () => false,
        perform: async (text) => {
          performed.push(text);
          if (text.startsWith('bad')) throw new Error('no');
          return undefined;
        },
      },
      bench(),
    );
    const records = [
      sqsRecord('bad', { messageId: 'm1', groupId: 'a' }),
      sqsRecord('behind', { messageId: 'm2', groupId: 'a' }),
      sqsRecord('other', { messageId: 'm3', groupId: 'b' }),
    ];
    const response = await handler(sqsEvent(...records), REQUEST);
    assert.deepEqual(performed, ['bad', 'other']);
    assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm1' }, { itemIdentifier: 'm2' }]);
  });
});

describe('messages of a group that are handled together', () => {
  const joining = (performed: string[][], may: (text: string) => boolean = () => true) =>
    ({
      ...texts(async () => undefined),
      joins: (before: readonly string[], next: string) => may(next) && before.length < 3,
      perform: async (text: string, _: ReceivedMessage, behind: readonly string[]) => {
        performed.push([text, ...behind]);
        if (text.startsWith('bad')) throw new Error('no');
        return undefined;
      },
    }) satisfies Consumption<string>;
  const inGroup = (text: string, receives = 1, groupId = 'a') =>
    sqsRecord(text, { messageId: text, groupId, receives });

  test('are consecutive messages of one group that can join, each once and in order', async () => {
    const performed: string[][] = [];
    const records = ['1', '2', '3', '4', '5'].map((text) => inGroup(text));
    const other = inGroup('other', 1, 'b');
    const response = await consume(joining(performed), bench())(sqsEvent(other, ...records), REQUEST);
    assert.deepEqual(performed, [['other'], ['1', '2', '3'], ['4', '5']]);
    assert.deepEqual(response.batchItemFailures, []);
  });

  test('start a new set after a message that cannot join', async () => {
    const performed: string[][] = [];
    const records = ['1', '2', 'alone', '3'].map((text) => inGroup(text));
    const handler = consume(
      joining(performed, (text) => text !== 'alone'),
      bench(),
    );
    await handler(sqsEvent(...records), REQUEST);
    assert.deepEqual(performed, [
      ['1', '2'],
      ['alone', '3'],
    ]);
  });

  test('are redelivered together when they fail, and are then handled one by one', async () => {
    const performed: string[][] = [];
    const given = bench();
    const handler = consume(joining(performed), given);
    for (const receives of [1, 2]) {
      const records = ['bad', '2', '3'].map((text) => inGroup(text, receives));
      const { batchItemFailures } = await handler(sqsEvent(...records), REQUEST);
      assert.equal(batchItemFailures.length, 3);
    }
    assert.deepEqual(performed, [['bad', '2', '3'], ['bad']]);
    assert.deepEqual(
      given.lines.map(({ event, receiveCount }) => [event, receiveCount]),
      [
        ['message.retrying', 1],
        ['message.retrying', 2],
      ],
    );
  });

  test('exclude messages that are redelivered, unreadable, or not admitted', async () => {
    const performed: string[][] = [];
    const given = bench();
    const consumption = {
      ...joining(performed),
      parse: (body: string) => {
        if (body === 'unreadable') throw new RejectedMessageError('no message');
        return body;
      },
      admit: async (text: string) => {
        if (text === 'foreign') throw new RejectedMessageError('not from you');
      },
    };
    const texts = ['1', 'again', '2', 'foreign', '3', 'unreadable', '4'];
    const records = texts.map((text) => inGroup(text, text === 'again' ? 2 : 1));
    const response = await consume(consumption, given)(sqsEvent(...records), REQUEST);
    assert.deepEqual(performed, [['1'], ['again'], ['2'], ['3'], ['4']]);
    assert.deepEqual(response.batchItemFailures, []);
    assert.deepEqual(
      given.deadLetters.sent.map(({ body }) => body),
      ['foreign', 'unreadable'],
    );
  });
});

test('redelivers a message with unfinished work later, without a logged failure', async () => {
  const given = bench();
  const again: Consumption<string> = {
    ...texts(async () => undefined),
    perform: async () => ({ againInSeconds: 0.25 }),
  };
  const response = await consume(again, given)(sqsEvent(sqsRecord('one')), REQUEST);
  assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm1' }]);
  assert.deepEqual(given.retried, [[{ receiptHandle: 'm1', seconds: 0.25 }]]);
  assert.deepEqual(given.lines, []);
});

describe('a rejected message', () => {
  const unreadable: Consumption<string> = {
    ...texts(async () => undefined),
    parse: () => {
      throw new RejectedMessageError('no message');
    },
  };
  const refusing = texts(async () => {
    throw new RejectedMessageError('not from you');
  });

  test('is dead-lettered with the reason, whether reading or handling rejects it, and is not redelivered', async () => {
    for (const [consumption, reason] of [
      [unreadable, 'no message'],
      [refusing, 'not from you'],
    ] as const) {
      const given = bench();
      const response = await consume(consumption, given)(sqsEvent(sqsRecord('x', { groupId: 'g' })), REQUEST);
      assert.deepEqual(response.batchItemFailures, []);
      assert.deepEqual(given.deadLetters.sent, [{ body: 'x', groupId: 'g', attributes: { reason } }]);
      assert.deepEqual(
        given.lines.map((line) => [line['level'], line['event'], line['messageId'], line['error']]),
        [['error', 'message.rejected', 'm1', reason]],
      );
    }
  });

  test('is dead-lettered once in an ordered queue, for any number of deliveries', async () => {
    const given = bench();
    const ordered = { ...unreadable, joins: () => false };
    await consume(ordered, given)(sqsEvent(sqsRecord('x', { groupId: 'g' })), REQUEST);
    assert.deepEqual(given.deadLetters.sent, [
      { body: 'x', groupId: 'g', deduplicationId: 'm1', attributes: { reason: 'no message' } },
    ]);
  });

  test('has no group as a dead letter if it had none before', async () => {
    const given = bench();
    await consume(unreadable, given)(sqsEvent(sqsRecord('x')), REQUEST);
    assert.deepEqual(given.deadLetters.sent, [{ body: 'x', attributes: { reason: 'no message' } }]);
  });

  test('stays in its queue while the dead-letter queue rejects it or is unreachable, with a logged error', async () => {
    const full = { refusal: { reason: 'full', permanent: false } };
    const away = { unreachable: new QueueError('away') };
    for (const [consumption, failure, error] of [
      [unreadable, full, 'the dead-letter queue rejected it: full'],
      [refusing, full, 'the dead-letter queue rejected it: full'],
      [unreadable, away, 'away'],
    ] as const) {
      const given = bench();
      Object.assign(given.deadLetters, failure);
      const response = await consume(consumption, given)(sqsEvent(sqsRecord('x')), REQUEST);
      assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm1' }]);
      assert.deepEqual(
        given.lines.map((line) => [line['event'], line['messageId'], line['error']]),
        [['message.dead-letter-failed', 'm1', error]],
      );
    }
  });

  test('is rejected only by its reader: any other error in reading redelivers it', async () => {
    const given = bench();
    const broken: Consumption<string> = {
      ...unreadable,
      parse: () => {
        throw new TypeError('a mistake of ours');
      },
    };
    const response = await consume(broken, given)(sqsEvent(sqsRecord('x')), REQUEST);
    assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm1' }]);
    assert.deepEqual([given.deadLetters.sent, given.lines], [[], []]);
  });

  test('has an error name for the cause', () => {
    assert.equal(new RejectedMessageError('no').name, 'RejectedMessageError');
  });
});

describe('a message that takes too long', () => {
  const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;

  test('is returned to the queue with the reason, and its timer ends', async () => {
    const given = bench();
    const slow: Consumption<string> = {
      ...texts(() => new Promise(() => undefined)),
      deadlineMs: 5,
    };
    const response = await consume(slow, given)(sqsEvent(sqsRecord('x')), REQUEST);
    assert.deepEqual(response.batchItemFailures, [{ itemIdentifier: 'm1' }]);
    assert.deepEqual(
      given.lines.map(({ event, error }) => [event, error]),
      [['message.retrying', 'not done within 5ms; the queue brings the message back']],
    );
  });

  test('leaves no timer when it was handled in time', async () => {
    const before = timers();
    await consume({ ...texts(async () => undefined), deadlineMs: 60_000 }, bench())(
      sqsEvent(sqsRecord('x')),
      REQUEST,
    );
    assert.equal(timers(), before);
  });
});
