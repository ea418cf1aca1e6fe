import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  type BatchResultErrorEntry,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { dueMetrics } from '#functions/agent/due-metrics.ts';
import {
  DueSource,
  MAX_CONCURRENT_BATCHES,
  UNREACHED_MS,
  WAIT_SECONDS,
} from '#functions/agent/due-source.ts';
import { type Consumer, processBatch, type ReceivedMessage } from '#shared/aws/consume.ts';
import { EVICT_BATCH_SIZE, EVICT_RECORD_DEADLINE_MS } from '#shared/aws/due-consumption.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { Again } from '#shared/engine/timers.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { drivenClock, driveTimers } from '#test/world/driven-timers.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';

const NOW = Date.UTC(2026, 10, 22, 12);
const URL = 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-agent-edge-1-evictions-due';
const MINUTE_MS = 60_000;

/** A queue that long-polls for the messages that the test puts there, and the source that receives from it. */
function source(t: TestContext, perform: (messageId: string) => Promise<Again | undefined>) {
  const time = driveTimers(t, NOW);
  const log = recordingLog();
  const registry = new Registry();
  const queue = {
    waiting: [] as Message[],
    /** Thrown in place of an answer. */
    away: undefined as Error | undefined,
    /** The answers to receive calls, or errors. */
    reached: [] as unknown[],
    /** Calls to receive messages never settle. */
    isSilent: false,
    refusesDeletes: false,
    /** The handler of batches throws. */
    isBroken: false,
    /** The messages that a delete of several leaves. */
    undeleted: [] as BatchResultErrorEntry[],
    /** Deletes and returns wait for this promise. */
    answer: Promise.resolve(),
    requests: [] as ReceiveMessageCommandInput[],
    /** The number of delete calls. */
    deletes: 0,
    deleted: [] as string[],
    /** The messages that become visible again, with the seconds until then. */
    givenBack: [] as (readonly [receiptHandle: string, seconds: number])[],
    handedOver: [] as ReceivedMessage[],
    /** The number of batches that were handed over. */
    batches: 0,
    put: (...ids: readonly string[]) => {
      queue.waiting.push(
        ...ids.map((id) => ({
          MessageId: id,
          ReceiptHandle: `handle of ${id}`,
          Body: `body of ${id}`,
          Attributes: { ApproximateReceiveCount: '2', SenderId: 'AROA:x', MessageGroupId: 'prod' },
        })),
      );
    },
  };
  const receive = async (input: ReceiveMessageCommandInput): Promise<{ Messages?: Message[] }> => {
    queue.requests.push(input);
    if (queue.away) throw queue.away;
    if (queue.isSilent) return new Promise(() => undefined);
    const endsAt = Date.now() + (input.WaitTimeSeconds ?? 0) * 1_000;
    while (queue.waiting.length === 0 && Date.now() < endsAt) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { MessageSystemAttributeNames: named = [] } = input;
    const Messages = queue.waiting
      .splice(0, input.MaxNumberOfMessages)
      .map(({ Attributes = {}, ...rest }) => ({
        ...rest,
        Attributes: Object.fromEntries(
          Object.entries(Attributes).filter(([name]) => named.some((each) => each === name)),
        ),
      }));
    return Messages.length === 0 ? {} : { Messages };
  };
  const client = {
    async send(command: unknown) {
      if (command instanceof ReceiveMessageCommand) return receive(command.input);
      assert.ok(command instanceof DeleteMessageBatchCommand);
      queue.deletes += 1;
      if (queue.refusesDeletes) throw new Error('the queue is away');
      queue.deleted.push(...(command.input.Entries ?? []).map(({ ReceiptHandle = '' }) => ReceiptHandle));
      await queue.answer;
      return { Failed: queue.undeleted };
    },
  };
  const visibility: VisibilityControl = {
    retryIn: async (messages) => {
      queue.givenBack.push(
        ...messages.map(({ receiptHandle, seconds }) => [receiptHandle, seconds] as const),
      );
      await queue.answer;
    },
  };
  const consumer: Consumer<string> = {
    parse: (body) => body,
    perform: (_, { messageId }) => perform(messageId),
    deadlineMs: EVICT_RECORD_DEADLINE_MS,
    retrySeconds: () => 300,
    about: (body) => ({ cluster: clusterName('prod'), node: nodeName(body) }),
    deadLetters: new ScriptedQueue(),
    visibility,
    log,
  };
  const due = new DueSource({
    client: client as unknown as SQSClient,
    queueUrl: URL,
    handle: async (messages) => {
      queue.batches += 1;
      queue.handedOver.push(...messages);
      if (queue.isBroken) throw new Error('broken');
      return processBatch(messages, consumer);
    },
    visibility,
    reached: (error) => queue.reached.push(error),
    metrics: dueMetrics(registry),
    clock: drivenClock,
    log,
  });
  const metric = async (name: string) =>
    (await registry.getSingleMetric(`taintward_agent_${name}`)?.get())?.values.map(({ value }) => value);
  const events = () => log.lines.map(({ event }) => event);
  return { due, queue, time, log, events, metric };
}

/** A handler whose messages the test resolves one by one. */
function handling() {
  const messages: PromiseWithResolvers<undefined>[] = [];
  const handle = () => {
    const message = Promise.withResolvers<undefined>();
    messages.push(message);
    return message.promise;
  };
  return { messages, handle };
}

const done = async () => undefined;
/** Stops a source whose last call waits for messages. */
async function stopped({ due, time }: ReturnType<typeof source>): Promise<void> {
  const stopping = due.stop(0);
  await time.pass((WAIT_SECONDS + 1) * 1_000);
  await stopping;
}

describe('the source of due messages', () => {
  test('passes messages on with their deliveries, and deletes them', async (t) => {
    const world = source(t, done);
    const { queue, time, metric } = world;
    assert.deepEqual(await metric('messages_total'), [0, 0]);
    queue.put('m1', 'm2');
    await time.pass(200);
    assert.deepEqual(queue.handedOver[0], {
      messageId: 'm1',
      receiptHandle: 'handle of m1',
      body: 'body of m1',
      receives: 2,
      senderId: 'AROA:x',
      groupId: 'prod',
    });
    assert.deepEqual(queue.deleted, ['handle of m1', 'handle of m2']);
    assert.deepEqual(await metric('messages_total'), [2, 0]);
    await stopped(world);
  });

  test('receives batches of the size of evict by long polling, and hides messages for the duration of their handling', async (t) => {
    const world = source(t, done);
    const { queue, time } = world;
    queue.put(...Array.from({ length: EVICT_BATCH_SIZE + 2 }, (_, index) => `m${index}`));
    await time.pass(300);
    assert.equal(queue.handedOver.length, EVICT_BATCH_SIZE + 2);
    for (const request of queue.requests) {
      assert.equal(request.QueueUrl, URL);
      assert.equal(request.MaxNumberOfMessages, EVICT_BATCH_SIZE);
      assert.equal(request.WaitTimeSeconds, WAIT_SECONDS);
      assert.ok((request.VisibilityTimeout ?? 0) * 1_000 > EVICT_RECORD_DEADLINE_MS);
    }
    await stopped(world);
  });

  test('keeps failed messages, and the whole batch when the handler throws', async (t) => {
    const world = source(t, async (messageId) => {
      if (messageId === 'm2') throw new Error('the table is away');
      return undefined;
    });
    const { queue, time, events, metric } = world;
    queue.put('m1', 'm2', 'm3');
    await time.pass(200);
    queue.isBroken = true;
    queue.put('m4', 'm5');
    await time.pass(200);
    assert.deepEqual(queue.deleted, ['handle of m1', 'handle of m3']);
    assert.deepEqual(queue.givenBack, [['handle of m2', 300]]);
    assert.deepEqual(events(), ['message.retrying', 'batch.failed']);
    assert.deepEqual(await metric('messages_total'), [2, 3]);
    await stopped(world);
  });

  test('makes unfinished messages visible at the time of their next attempt', async (t) => {
    const world = source(t, async () => ({ againInSeconds: 30 }));
    const { queue, time, metric } = world;
    queue.put('m1', 'm2');
    await time.pass(200);
    assert.deepEqual(queue.givenBack, [
      ['handle of m1', 30],
      ['handle of m2', 30],
    ]);
    assert.equal(queue.deletes, 0);
    assert.deepEqual(await metric('messages_total'), [0, 2]);
    await stopped(world);
  });

  test('limits concurrent batches and receives the next batch when one settles', async (t) => {
    const { messages, handle } = handling();
    const world = source(t, handle);
    const { queue, time, metric } = world;
    const all = Array.from(
      { length: (MAX_CONCURRENT_BATCHES + 1) * EVICT_BATCH_SIZE },
      (_, index) => `m${index}`,
    );
    queue.put(...all);
    await time.pass(1_000);
    assert.equal(messages.length, MAX_CONCURRENT_BATCHES * EVICT_BATCH_SIZE);
    assert.deepEqual(await metric('batches_in_flight'), [MAX_CONCURRENT_BATCHES]);
    for (const { resolve } of messages.slice(0, EVICT_BATCH_SIZE)) resolve(undefined);
    await time.pass(200);
    assert.equal(messages.length, all.length);
    for (const { resolve } of messages) resolve(undefined);
    await time.pass(200);
    assert.equal(queue.deleted.length, all.length);
    await stopped(world);
  });

  test('logs a failed delete and continues', async (t) => {
    const world = source(t, done);
    const { queue, time, log, events } = world;
    queue.refusesDeletes = true;
    queue.put('m1');
    await time.pass(200);
    assert.deepEqual(events(), ['message.not-deleted']);
    queue.refusesDeletes = false;
    queue.undeleted = [{ Id: '1', Code: 'InternalError', Message: 'try again', SenderFault: false }];
    queue.put('m2', 'm3');
    await time.pass(200);
    assert.deepEqual(queue.deleted, ['handle of m2', 'handle of m3']);
    const { queue: name, messageId, error } = log.lines[1]?.fields ?? {};
    assert.deepEqual([name, messageId, error], ['tw-agent-edge-1-evictions-due', 'm3', 'try again']);
    await stopped(world);
  });
});

describe('while the queue is unreachable, the source', () => {
  test('backs off, logs once, and reports each failed call', async (t) => {
    const world = source(t, done);
    const { queue, time, events, metric } = world;
    const outage = new Error('no way there');
    queue.away = outage;
    await time.pass(WAIT_SECONDS * 1_000 + 200);
    assert.deepEqual(queue.reached.slice(0, 2), [undefined, outage]);
    await time.pass(30_000);
    const requested = queue.requests.length;
    assert.ok(requested < 15, `asked ${requested} times`);
    await time.pass(60_000);
    assert.equal(queue.reached.filter((error) => error === outage).length, queue.requests.length - 1);
    assert.ok(queue.requests.length - requested >= 6, 'it is asked again');
    assert.ok(
      queue.requests.length - requested <= 12,
      `asked ${queue.requests.length - requested} times in a minute`,
    );
    assert.deepEqual(events(), ['queue.unreachable']);
    const [failures = 0] = (await metric('receive_failures_total')) ?? [];
    assert.ok(failures > 6);
    queue.away = undefined;
    queue.put('m1');
    await time.pass(11_000);
    assert.equal(queue.reached.at(-1), undefined);
    assert.deepEqual(queue.deleted, ['handle of m1']);
    await stopped(world);
  });

  test('reports a call that never settles within 15 s, and neither reports nor handles one that waits for messages in vain', async (t) => {
    const { queue, time } = source(t, done);
    await time.pass(5 * WAIT_SECONDS * 1_000 + 500);
    assert.equal(queue.batches, 0);
    queue.isSilent = true;
    await time.pass(WAIT_SECONDS * 1_000);
    assert.ok(queue.reached.every((error) => error === undefined));
    await time.pass(UNREACHED_MS);
    assert.deepEqual(queue.reached.at(-1), new Error('There is no answer within 15s'));
    assert.ok(UNREACHED_MS <= 15_000);
  });

  test('logs that again every 10 minutes, and in a later outage', async (t) => {
    const world = source(t, done);
    const { queue, time, events } = world;
    const outage = new Error('no way there');
    queue.away = outage;
    await time.pass(10 * MINUTE_MS);
    assert.equal(events().length, 1);
    await time.pass(MINUTE_MS);
    assert.equal(events().length, 2);
    queue.away = undefined;
    await time.pass(10 * MINUTE_MS);
    queue.away = outage;
    await time.pass(MINUTE_MS);
    assert.deepEqual(events(), Array(3).fill('queue.unreachable'));
    await stopped(world);
  });

  test('resets its backoff after an answer', async (t) => {
    const world = source(t, done);
    const { queue, time } = world;
    queue.away = new Error('no way there');
    await time.pass(60_000);
    queue.away = undefined;
    queue.put('m1');
    await time.pass(11_000);
    queue.away = new Error('no way there');
    const requested = queue.requests.length;
    while (queue.requests.length === requested) await time.pass(100);
    queue.away = undefined;
    queue.put('m2');
    await time.pass(1_000);
    assert.deepEqual(queue.deleted, ['handle of m1', 'handle of m2']);
    await stopped(world);
  });
});

describe('a stopping source', () => {
  test('receives nothing more and ends when its batches are handled', async (t) => {
    const { messages, handle } = handling();
    const { due, queue, time } = source(t, handle);
    queue.put('m1');
    await time.pass(200);
    let isStopped = false;
    const stopping = due.stop(10_000).then(() => {
      isStopped = true;
    });
    await time.pass(WAIT_SECONDS * 1_000 + 200);
    assert.ok(!isStopped);
    const requested = queue.requests.length;
    messages[0]?.resolve(undefined);
    await time.pass(100);
    await stopping;
    assert.deepEqual(queue.deleted, ['handle of m1']);
    assert.deepEqual(queue.givenBack, []);
    assert.equal(queue.requests.length, requested);
  });

  test('does not receive again once one of too many batches settles', async (t) => {
    const { messages, handle } = handling();
    const { due, queue, time } = source(t, handle);
    queue.put(
      ...Array.from({ length: MAX_CONCURRENT_BATCHES * EVICT_BATCH_SIZE }, (_, index) => `m${index}`),
    );
    await time.pass(1_000);
    let isStopped = false;
    void due.stop(10_000).then(() => {
      isStopped = true;
    });
    for (const { resolve } of messages) resolve(undefined);
    await time.pass(200);
    assert.deepEqual([isStopped, queue.requests.length], [true, MAX_CONCURRENT_BATCHES]);
  });

  test('waits for its last call and immediately returns the messages of that call to the queue', async (t) => {
    const { due, queue, time } = source(t, done);
    await time.pass(200);
    const stopping = due.stop(10_000);
    await time.pass(1_000);
    queue.put('m1', 'm2');
    await time.pass(200);
    await stopping;
    assert.deepEqual(queue.handedOver, []);
    assert.deepEqual(queue.givenBack, [
      ['handle of m1', 0],
      ['handle of m2', 0],
    ]);
    assert.deepEqual(queue.deleted, []);
  });

  test('returns unfinished messages to the queue at its timeout', async (t) => {
    const { due, queue, time } = source(t, handling().handle);
    queue.put('m1');
    await time.pass(200);
    const stopping = due.stop(5_000);
    await time.pass((WAIT_SECONDS + 5) * 1_000 + 500);
    await stopping;
    assert.deepEqual(queue.givenBack, [['handle of m1', 0]]);
  });

  for (const [what, perform, withinMs, isLate] of [
    ['the delete of a handled message', done, MINUTE_MS, false],
    ['the return of an unfinished message', async () => ({ againInSeconds: 30 }), MINUTE_MS, false],
    ['a return at its timeout', handling().handle, 5_000, false],
    ['a return of its last call', done, MINUTE_MS, true],
  ] as const) {
    test(`ends only when the queue has answered ${what}`, async (t) => {
      const { due, queue, time } = source(t, perform);
      const answer = Promise.withResolvers<void>();
      queue.answer = answer.promise;
      if (!isLate) queue.put('m1');
      await time.pass(200);
      let isStopped = false;
      const stopping = due.stop(withinMs).then(() => {
        isStopped = true;
      });
      if (isLate) queue.put('m1');
      await time.pass(WAIT_SECONDS * 1_000 + 6_000);
      assert.equal(isStopped, false);
      answer.resolve();
      await time.settle();
      await stopping;
    });
  }

  test('does not wait for the end of a backoff', async (t) => {
    const { due, queue, time } = source(t, done);
    queue.away = new Error('no way there');
    await time.pass(60_000);
    const stopping = due.stop(10_000);
    await time.pass(50);
    await stopping;
  });
});
