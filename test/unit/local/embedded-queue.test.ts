import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { SQSRecord } from 'aws-lambda';
import { startEventSource } from '#functions/local/embedded-event-source.ts';
import { EmbeddedQueue } from '#functions/local/embedded-queue.ts';
import { handledOf } from '#shared/queues/handled.ts';
import { MAX_MESSAGE_BYTES } from '#shared/queues/limits.ts';
import { QUEUES, type QueueSpec, visibilitySeconds } from '#shared/queues/queue-set.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type QueueRig, queueContract } from '#test/contracts/queue-contract.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

/** An empty queue, and what it gave up. */
function embedded(spec: QueueSpec) {
  const log = recordingLog();
  const letters: string[] = [];
  const deadLetters = { add: (_queue: string, { body }: { body: string }) => void letters.push(body) };
  return { queue: new EmbeddedQueue({ spec, deadLetters, clock: systemClock, log }), letters, log };
}

async function rigFor(context: TestContext): Promise<QueueRig> {
  const { pass, settle } = driveTimers(context, NOW);
  /** Far more turns than any of the contract's stories takes. */
  const TURNS = 200;
  return {
    pass,
    async until(check) {
      for (let turn = 1; ; turn++) {
        await settle();
        try {
          return await check();
        } catch (error) {
          if (turn === TURNS) throw error;
        }
      }
    },
    async open(spec) {
      const { queue, letters, log } = embedded(spec);
      return {
        sender: queue,
        visibility: queue,
        log,
        deadLetters: async () => letters,
        consume(handler, { batchSize = 10, concurrency = 2 } = {}) {
          const source = startEventSource({ queue, handler, batchSize, concurrency, log });
          context.after(() => source.stop());
          return source;
        },
      };
    },
  };
}

queueContract('the embedded queue', rigFor, { concurrency: false });

describe('the embedded queue', () => {
  const inGroup = (groupId: string, ...bodies: readonly string[]) =>
    bodies.map((body) => ({ body, groupId, deduplicationId: body }));
  const bodiesOf = (records: readonly SQSRecord[]) => records.map(({ body }) => body);
  const receive = (queue: EmbeddedQueue, most = 10) => bodiesOf(queue.receive(most));
  const retryNow = (queue: EmbeddedQueue, records: readonly SQSRecord[]) =>
    queue.retryIn(records.map(({ receiptHandle }) => ({ receiptHandle, seconds: 0 })));

  test('fills a batch with one group, and puts what comes back into its order again', async () => {
    const { queue } = embedded(QUEUES.podDeltas);
    await queue.send([...inGroup('a', '1', '2', '3'), ...inGroup('b', 'x'), ...inGroup('a', '4', '5')]);
    const [handled, second, third, fourth] = queue.receive(4);
    assert.ok(handled && second && third && fourth);
    assert.deepEqual(bodiesOf([handled, second, third, fourth]), ['1', '2', '3', '4']);
    assert.deepEqual(receive(queue), ['x']);
    queue.delete(handled.receiptHandle);
    for (const back of [third, second, fourth]) {
      assert.deepEqual(receive(queue), []);
      await retryNow(queue, [back]);
    }
    assert.deepEqual(receive(queue), ['2', '3', '4', '5']);
  });

  test('lets no cluster with much in flight keep another waiting, though what it sent came first', async () => {
    const { queue } = embedded(QUEUES.evictionsDue);
    const of = (groupId: string, count: number) =>
      Array.from({ length: count }, (_, index) => ({ body: `${groupId}${index}`, groupId }));
    await queue.send([...of('noisy', 20), ...of('quiet', 1)]);
    assert.equal(receive(queue, 5).length, 5);
    assert.deepEqual(receive(queue, 5), ['quiet0']);
  });

  test('shows a delayed message on the millisecond, and one in flight when its time is over', async (context) => {
    const { pass } = driveTimers(context, NOW);
    const { queue } = embedded(QUEUES.evictionsDue);
    await queue.send([{ body: 'delayed', delaySeconds: 900 }]);
    await pass(899_999);
    assert.deepEqual(receive(queue), []);
    await pass(1);
    const [first] = queue.receive(10);
    assert.equal(first?.body, 'delayed');
    await pass(visibilitySeconds(QUEUES.evictionsDue) * 1000 - 1);
    assert.deepEqual(receive(queue), []);
    await pass(1);
    const [second] = queue.receive(10);
    assert.equal(second?.attributes.ApproximateReceiveCount, '2');
    assert.equal(first.attributes.ApproximateFirstReceiveTimestamp, String(NOW + 900_000));
    assert.equal(
      second.attributes.ApproximateFirstReceiveTimestamp,
      first.attributes.ApproximateFirstReceiveTimestamp,
    );
    await queue.retryIn([{ receiptHandle: second.receiptHandle, seconds: 0.25 }]);
    await pass(249);
    assert.deepEqual(receive(queue), []);
    await pass(1);
    assert.deepEqual(receive(queue), ['delayed']);
  });

  test('knows a deduplication id for five minutes, within its group', async (context) => {
    const { pass } = driveTimers(context, NOW);
    const { queue } = embedded(QUEUES.nodeDeltas);
    const once = { body: 'once', groupId: 'a', deduplicationId: 'id' };
    const sendAndReceive = async (groupId: string) => {
      await queue.send([{ ...once, groupId }]);
      const records = queue.receive(10);
      for (const { receiptHandle } of records) queue.delete(receiptHandle);
      return bodiesOf(records);
    };
    assert.deepEqual(await sendAndReceive('a'), ['once']);
    assert.deepEqual(await sendAndReceive('b'), ['once']);
    await pass(5 * 60_000 - 1);
    assert.deepEqual(await sendAndReceive('a'), []);
    await pass(1);
    assert.deepEqual(await sendAndReceive('a'), ['once']);
  });

  test('lets the group of a standard queue with the fewest messages in flight go first', async () => {
    const { queue } = embedded(QUEUES.evictionsDue);
    const bodies = ['n1', 'n2', 'n3', 'n4'];
    await queue.send([...inGroup('noisy', ...bodies), ...inGroup('quiet', 'q1', 'q2')]);
    const turns = Array.from({ length: 6 }, () => receive(queue, 1));
    assert.deepEqual(turns.flat(), ['n1', 'q1', 'n2', 'q2', 'n3', 'n4']);
  });

  test('refuses what it has no room for, and takes it when there is room again', async () => {
    const { queue } = embedded(QUEUES.nodeDeltas);
    const large = 'x'.repeat(MAX_MESSAGE_BYTES);
    const fill = Array.from({ length: 32 }, (_, index) => ({
      body: large,
      groupId: 'a',
      deduplicationId: String(index),
    }));
    assert.deepEqual(await queue.send(fill), []);
    const late = [...inGroup('a', 'a1', 'a2'), ...inGroup('b', 'b1')];
    const failures = await queue.send(late);
    const full = 'queue node-deltas.fifo is full: its handler cannot keep up';
    assert.deepEqual(failures, [
      { index: 0, reason: full, permanent: false },
      { index: 1, reason: 'message 0 of its group failed', permanent: false },
      { index: 2, reason: full, permanent: false },
    ]);
    const [handled] = queue.receive(1);
    queue.delete(handled?.receiptHandle ?? '');
    assert.deepEqual(await queue.send(late), []);
  });

  test('keeps a message that cannot be stored as a dead letter, and tries again later', async (context) => {
    const { pass } = driveTimers(context, NOW);
    const log = recordingLog();
    let full = true;
    const letters: string[] = [];
    const deadLetters = {
      add(_queue: string, { body }: { body: string }, reason: string) {
        if (full) throw new Error('the disk is full');
        letters.push(`${body} for the reason that it was ${reason}`);
      },
    };
    const spec = { ...QUEUES.nodeDeltas, maxReceiveCount: 1 };
    const queue = new EmbeddedQueue({ spec, deadLetters, clock: systemClock, log });
    await queue.send(inGroup('a', 'poison', 'behind'));
    await retryNow(queue, queue.receive(1));
    assert.deepEqual(receive(queue), []);
    full = false;
    await pass(visibilitySeconds(spec) * 1000);
    assert.deepEqual(receive(queue), ['behind']);
    assert.deepEqual(letters, ['poison for the reason that it was received 1 times and never handled']);
    const [unsaved, buried] = log.lines;
    const { messageId } = unsaved?.fields ?? {};
    assert.ok(messageId);
    assert.deepEqual(
      [unsaved?.event, { ...unsaved?.fields, reason: String(unsaved?.fields['reason']) }],
      ['dead-letter.unsaved', { queue: 'node-deltas.fifo', messageId, reason: 'Error: the disk is full' }],
    );
    assert.deepEqual(
      [buried?.event, buried?.fields],
      ['message.dead-lettered', { queue: 'node-deltas.fifo', messageId, receives: 1 }],
    );
  });

  test('hands a message over in the turn after it was sent, and the next while that is handled', async (context) => {
    const { settle } = driveTimers(context, NOW);
    const { queue, log } = embedded(QUEUES.nodeDeltas);
    const seen: string[] = [];
    const handler = async ({ Records }: { Records: SQSRecord[] }) => {
      seen.push(...bodiesOf(Records));
      return new Promise<never>(() => undefined);
    };
    startEventSource({ queue, handler, batchSize: 5, concurrency: 2, log });
    await queue.send(inGroup('a', 'a1'));
    await settle();
    assert.deepEqual(seen, ['a1']);
    await queue.send(inGroup('b', 'b1'));
    await settle();
    assert.deepEqual(seen, ['a1', 'b1']);
  });

  test('shows a message again that was handled too late, and says so', async (context) => {
    const { pass } = driveTimers(context, NOW);
    const { queue, log } = embedded(QUEUES.evictionsDue);
    const slow = Promise.withResolvers<void>();
    const seen: (string | undefined)[] = [];
    const handler = async ({ Records: [record] }: { Records: SQSRecord[] }) => {
      seen.push(record?.attributes.ApproximateReceiveCount);
      if (seen.length === 1) await slow.promise;
      return { batchItemFailures: [] };
    };
    startEventSource({ queue, handler, batchSize: 1, concurrency: 2, log });
    await queue.send([{ body: 'a' }]);
    await pass(visibilitySeconds(QUEUES.evictionsDue) * 1000);
    assert.deepEqual(seen, ['1', '2']);
    slow.resolve();
    await pass(1);
    const [line, ...more] = log.lines;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [line?.event, line?.fields['queue'], typeof line?.fields['messageId'], line?.fields['reason']],
      ['message.not-deleted', 'evictions-due', 'string', 'it was seen again before it was handled'],
    );
  });

  test('hands over one batch in a turn, however much was sent, and no more than are handled at a time', async () => {
    const { queue, log } = embedded(QUEUES.nodeDeltas);
    const seen: string[] = [];
    const done = new Map<string, () => void>();
    const handler = async ({ Records }: { Records: SQSRecord[] }) => {
      const [body = ''] = bodiesOf(Records);
      seen.push(body);
      await new Promise<void>((resolve) => done.set(body, resolve));
      return { batchItemFailures: [] };
    };
    const source = startEventSource({ queue, handler, batchSize: 5, concurrency: 2, log });
    const turn = () => new Promise(setImmediate);
    for (const group of ['a', 'b', 'c', 'd', 'e']) await queue.send(inGroup(group, group));
    await turn();
    assert.deepEqual(seen, ['a']);
    await turn();
    assert.deepEqual(seen, ['a', 'b']);
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual(seen, ['a', 'b']);
    done.get('a')?.();
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual(seen, ['a', 'b', 'c']);

    let stopped = false;
    const stopping = source.stop().then(() => {
      stopped = true;
    });
    done.get('b')?.();
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual([seen, stopped], [['a', 'b', 'c'], false]);
    done.get('c')?.();
    await stopping;
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual([seen, queue.size], [['a', 'b', 'c'], 2]);
  });

  test('that is stopped before its first turn hands nothing over', async () => {
    const { queue, log } = embedded(QUEUES.nodeDeltas);
    await queue.send(inGroup('a', 'a1'));
    const handler = () => assert.fail('it was stopped');
    await startEventSource({ queue, handler, batchSize: 5, concurrency: 2, log }).stop();
    await new Promise(setImmediate);
    assert.equal(queue.size, 1);
  });

  test('says what became of each message as SQS says it', async (context) => {
    const { pass } = driveTimers(context, NOW);
    const common = (name: string) => ({
      body: 'x',
      md5OfBody: '',
      eventSource: 'aws:sqs',
      eventSourceARN: `arn:aws:sqs:local:000000000000:${name}`,
      awsRegion: 'local',
    });
    const times = {
      ApproximateReceiveCount: '1',
      SentTimestamp: String(NOW),
      SenderId: 'local',
      ApproximateFirstReceiveTimestamp: String(NOW + 50),
    };
    const sent = {
      fifo: { body: 'x', groupId: 'g', deduplicationId: 'd', attributes: { reason: 'late' } },
      standard: { body: 'x' },
    };
    const [fifo, standard] = [embedded(QUEUES.nodeDeltas).queue, embedded(QUEUES.evictionsDue).queue];
    await fifo.send([sent.fifo]);
    await standard.send([sent.standard]);
    await pass(50);
    const [ordered, plain] = [fifo.receive(1), standard.receive(1)].flat();
    assert.ok(ordered && plain);
    const { messageId, receiptHandle, ...record } = ordered;
    assert.ok(receiptHandle.startsWith(messageId));
    const value = { stringValue: 'late', stringListValues: [], binaryListValues: [], dataType: 'String' };
    assert.deepEqual(record, {
      ...common('node-deltas.fifo'),
      attributes: { ...times, MessageGroupId: 'g', MessageDeduplicationId: 'd', SequenceNumber: '1' },
      messageAttributes: { reason: value },
    });
    const { messageId: _id, receiptHandle: _receipt, ...other } = plain;
    assert.deepEqual(other, { ...common('evictions-due'), attributes: times, messageAttributes: {} });
  });

  test('says how many messages it holds, until they are handled or given up', async () => {
    const { queue } = embedded({ ...QUEUES.nodeDeltas, maxReceiveCount: 1 });
    await queue.send([...inGroup('a', 'a1'), ...inGroup('b', 'b1'), { body: 'c1', groupId: 'c' }]);
    assert.equal(queue.size, 3);
    const [first, second] = [queue.receive(1), queue.receive(1)].flat();
    assert.ok(first && second);
    queue.delete(first.receiptHandle);
    assert.equal(queue.size, 2);
    await retryNow(queue, [second]);
    assert.deepEqual(receive(queue), ['c1']);
    assert.deepEqual(receive(queue), []);
    assert.equal(queue.size, 1);
  });

  test('has room again for what it gave up', async () => {
    const { queue } = embedded({ ...QUEUES.nodeDeltas, maxReceiveCount: 1 });
    const large = Array.from({ length: 32 }, (_, index) => ({
      body: 'x'.repeat(MAX_MESSAGE_BYTES),
      groupId: 'a',
      deduplicationId: String(index),
    }));
    assert.deepEqual(await queue.send(large), []);
    assert.equal((await queue.send(inGroup('b', 'b1'))).length, 1);
    await retryNow(queue, queue.receive(1));
    queue.receive(1);
    assert.deepEqual(await queue.send(inGroup('b', 'b1')), []);
  });

  test('goes on with the next group where all of one is given up', async () => {
    const { queue, letters } = embedded({ ...QUEUES.nodeDeltas, maxReceiveCount: 1 });
    await queue.send(inGroup('a', 'a1'));
    await retryNow(queue, queue.receive(1));
    await queue.send(inGroup('b', 'b1'));
    assert.deepEqual(receive(queue), ['b1']);
    assert.deepEqual(letters, ['a1']);
  });

  test('gives each group its turn, and a group with less in flight before it', async () => {
    const { queue } = embedded(QUEUES.evictionsDue);
    await queue.send([...inGroup('a', 'a1', 'a2', 'a3'), ...inGroup('b', 'b1')]);
    const [handled] = queue.receive(1);
    queue.delete(handled?.receiptHandle ?? '');
    assert.deepEqual(receive(queue, 1), ['b1']);
    assert.deepEqual(receive(queue, 1), ['a2']);
    await queue.send(inGroup('c', 'c1'));
    assert.deepEqual(receive(queue, 1), ['c1']);
  });

  test('keeps messages apart by their deduplication ids on a FIFO queue alone, and only those that have one', async () => {
    const [fifo, standard] = [embedded(QUEUES.nodeDeltas).queue, embedded(QUEUES.evictionsDue).queue];
    const named = { body: 'x', groupId: 'a', deduplicationId: 'd' };
    const unnamed = { body: 'x', groupId: 'a' };
    await fifo.send([unnamed, unnamed, named, named]);
    await standard.send([unnamed, unnamed, named, named]);
    assert.deepEqual([fifo.size, standard.size], [3, 4]);
  });

  test('puts what comes back behind the others, where messages have no order', async () => {
    const { queue } = embedded(QUEUES.evictionsDue);
    await queue.send(inGroup('a', '1', '2', '3'));
    await retryNow(queue, queue.receive(1));
    assert.deepEqual(receive(queue), ['2', '3', '1']);
  });

  test('puts what comes back last into its place, behind all others', async () => {
    const { queue } = embedded(QUEUES.nodeDeltas);
    await queue.send(inGroup('a', '1', '2', '3'));
    for (const record of queue.receive(3)) await retryNow(queue, [record]);
    assert.deepEqual(receive(queue), ['1', '2', '3']);
  });

  test('says that it cannot show a message again that was handled', async () => {
    const { queue, log } = embedded(QUEUES.evictionsDue);
    await queue.send([{ body: 'a' }]);
    const records = queue.receive(1);
    queue.delete(records[0]?.receiptHandle ?? '');
    await retryNow(queue, records);
    const reason = 'the message was handled, or seen again, before';
    assert.deepEqual(
      log.lines.map(({ event, fields }) => [event, fields]),
      [['visibility.unchanged', { queue: 'evictions-due', reason }]],
    );
  });
});

describe('what a handler handled of a batch', () => {
  const records = ['m1', 'm2'].map((messageId) => ({ messageId }) as SQSRecord);
  const reported = async (...itemIdentifiers: readonly string[]) => {
    const log = recordingLog();
    const handler = async () => ({
      batchItemFailures: itemIdentifiers.map((itemIdentifier) => ({ itemIdentifier })),
    });
    const handled = await handledOf(records, handler, 'q', log);
    return { handled: handled.map(({ messageId }) => messageId), lines: log.lines };
  };

  test('is all that it does not report', async () => {
    assert.deepEqual(await reported(), { handled: ['m1', 'm2'], lines: [] });
    assert.deepEqual(await reported('m1'), { handled: ['m2'], lines: [] });
    assert.deepEqual(await reported('m1', 'm2'), { handled: [], lines: [] });
  });

  test('is nothing when it reports a message that is not in it, or throws, which is told', async () => {
    const { handled, lines } = await reported('m1', 'm3');
    assert.deepEqual(handled, []);
    const reason = 'a message was reported that is not in it';
    assert.deepEqual(
      lines.map(({ event, fields }) => [event, fields]),
      [['batch.failed', { queue: 'q', messages: 2, reason }]],
    );
    const log = recordingLog();
    const error = new Error('no');
    assert.deepEqual(await handledOf(records, () => Promise.reject(error), 'q', log), []);
    assert.deepEqual(log.lines[0]?.fields, { queue: 'q', messages: 2, reason: error });
  });
});
