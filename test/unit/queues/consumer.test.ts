import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from 'aws-lambda';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { type ConsumerDeps, type Consumption, consume } from '#shared/queues/consumer.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

const REQUEST = { awsRequestId: 'r1' } as Context;

interface Bench extends ConsumerDeps {
  readonly lines: Record<string, unknown>[];
  flushed: number;
}

function bench(): Bench {
  const lines: Record<string, unknown>[] = [];
  const given: Bench = {
    lines,
    flushed: 0,
    deadLetters: new ScriptedQueue(),
    visibility: { retryIn: async () => undefined },
    log: jsonLog('info', { write: (line: string) => lines.push(JSON.parse(line)) }),
    metrics: {
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
  order: 'none',
  deadlineMs: 1000,
  retrySeconds: () => undefined,
  about: (text) => ({ cluster: clusterName('c1'), node: nodeName(text) }),
});

test('what is logged about a message carries its id', async () => {
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

test('metrics are written at the end of each invocation, whatever failed in it', async () => {
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

test('messages without an order are handled all at once', async () => {
  const { promise: both, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  const handler = consume(
    texts(async () => {
      arrived += 1;
      if (arrived === 2) resolve();
      await both;
    }),
    bench(),
  );
  const records = [sqsRecord('one', { messageId: 'm1' }), sqsRecord('two', { messageId: 'm2' })];
  assert.deepEqual(await handler(sqsEvent(...records), REQUEST), { batchItemFailures: [] });
});
