import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { SQSRecord } from 'aws-lambda';
import { startEventSource } from '#functions/local/embedded-event-source.ts';
import { EmbeddedQueue } from '#functions/local/embedded-queue.ts';
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
    assert.deepEqual(
      failures.map(({ index, permanent }) => [index, permanent]),
      [
        [0, false],
        [1, false],
        [2, false],
      ],
    );
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
      add(_queue: string, { body }: { body: string }) {
        if (full) throw new Error('the disk is full');
        letters.push(body);
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
    assert.deepEqual(letters, ['poison']);
    assert.deepEqual(
      log.lines.map(({ event }) => event),
      ['dead-letter.unsaved', 'message.dead-lettered'],
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
    assert.deepEqual(
      log.lines.map(({ event }) => event),
      ['message.not-deleted'],
    );
  });
});
