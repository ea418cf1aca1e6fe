import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import { QUEUES, type QueueSpec } from '#shared/aws/queue-set.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { RecordingLog } from './recording-log.ts';

export type Handler = (event: SQSEvent) => Promise<SQSBatchResponse>;

/** One queue with all its operations. */
export interface QueueUnderTest {
  readonly sender: QueueSender;
  readonly visibility: VisibilityControl;
  /** The log of the queue's adapters. */
  readonly log: RecordingLog;
  /** Passes the queue's messages to a handler until it is stopped, or the test ends. */
  consume(
    handler: Handler,
    options?: { batchSize?: number; concurrency?: number },
  ): { stop(): Promise<void> };
  /** Returns the bodies of the messages in the dead-letter queue. */
  deadLetters(): Promise<readonly string[]>;
}

/** The place of queues, with control of its time. */
export interface QueueRig {
  /** Creates a queue for this test alone. */
  open(spec: QueueSpec): Promise<QueueUnderTest>;
  /** Lets this much time pass. */
  pass(ms: number): Promise<void>;
  /** Waits until a check passes; rejects with its last failure. */
  until(check: () => void | Promise<void>): Promise<void>;
}

/** Short enough to wait for: messages in flight become visible again after six of these seconds. */
const TIMEOUT_SECONDS = 1;
const VISIBILITY_MS = 6_000;

const NOTHING_FAILED: SQSBatchResponse = { batchItemFailures: [] };
const failed = (records: readonly SQSRecord[]): SQSBatchResponse => ({
  batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })),
});
const bodyAndReceives = ({ body, attributes }: SQSRecord) => `${body} ${attributes.ApproximateReceiveCount}`;
const isFirst = ({ attributes }: SQSRecord) => attributes.ApproximateReceiveCount === '1';
const message = (group: string, body: string) => ({ body, groupId: group, deduplicationId: randomUUID() });

/** Registers the tests that every queue, with its consumer, has to pass. */
export function queueContract(
  name: string,
  rigFor: (context: TestContext) => Promise<QueueRig>,
  { concurrency }: { readonly concurrency: boolean },
): void {
  describe(`${name} keeps the contract of queues`, { concurrency }, () => {
    const fifo = { ...QUEUES.nodeDeltas, functionTimeoutSeconds: TIMEOUT_SECONDS };
    const standard = { ...QUEUES.evictionsDue, functionTimeoutSeconds: TIMEOUT_SECONDS };

    /** Handles every message, and records it with its arrival time. */
    function collect({ consume }: QueueUnderTest) {
      const records: SQSRecord[] = [];
      const cameAt: number[] = [];
      const { stop } = consume(async ({ Records }) => {
        records.push(...Records);
        cameAt.push(...Records.map(() => Date.now()));
        return NOTHING_FAILED;
      });
      return { records, cameAt, bodies: () => records.map(({ body }) => body), stop };
    }

    const retryNow = ({ visibility }: QueueUnderTest, records: readonly SQSRecord[]) =>
      visibility.retryIn(records.map(({ receiptHandle }) => ({ receiptHandle, seconds: 0 })));

    test('keeps the order of a group', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const bodies = Array.from({ length: 25 }, (_, index) => `a${index}`);
      const seen = collect(queue);
      assert.deepEqual(await queue.sender.send(bodies.map((body) => message('a', body))), []);
      await rig.until(() => assert.equal(seen.records.length, bodies.length));
      assert.deepEqual(seen.bodies(), bodies);
    });

    test('accepts nothing of a group behind a failed message, and everything of other groups', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const seen = collect(queue);
      const oversize = 'x'.repeat(MAX_MESSAGE_BYTES + 1);
      const failures = await queue.sender.send([
        message('a', 'a1'),
        message('b', 'b1'),
        message('a', oversize),
        message('a', 'a3'),
        message('b', 'b2'),
      ]);
      assert.deepEqual(
        failures.map(({ index, permanent }) => [index, permanent]),
        [
          [2, true],
          [3, false],
        ],
      );
      assert.deepEqual(await queue.sender.send([message('a', 'a4'), message('b', 'b3')]), []);
      await rig.until(() => assert.equal(seen.records.length, 5));
      const ofGroup = (group: string) => seen.bodies().filter((body) => body.startsWith(group));
      assert.deepEqual(
        [ofGroup('a'), ofGroup('b')],
        [
          ['a1', 'a4'],
          ['b1', 'b2', 'b3'],
        ],
      );
    });

    test('withholds a group while a message of it is in flight, but no other group', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const gate = Promise.withResolvers<void>();
      const seen: string[] = [];
      queue.consume(async ({ Records }) => {
        seen.push(...Records.map(({ body }) => body));
        if (Records.some(({ body }) => body === 'a1')) await gate.promise;
        return NOTHING_FAILED;
      });
      await queue.sender.send([message('a', 'a1')]);
      await rig.until(() => assert.deepEqual(seen, ['a1']));
      await queue.sender.send([message('a', 'a2'), message('b', 'b1')]);
      await rig.until(() => assert.deepEqual(seen, ['a1', 'b1']));
      gate.resolve();
      await rig.until(() => assert.deepEqual(seen, ['a1', 'b1', 'a2']));
    });

    test('accepts a message with a known deduplication ID without queueing it again', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const seen = collect(queue);
      const twice = message('a', 'once');
      assert.deepEqual(await queue.sender.send([twice]), []);
      await rig.until(() => assert.deepEqual(seen.bodies(), ['once']));
      assert.deepEqual(await queue.sender.send([twice, message('a', 'next')]), []);
      await rig.until(() => assert.deepEqual(seen.bodies(), ['once', 'next']));
    });

    test('accepts more messages than fit into one SQS call, by count and by bytes', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen = collect(queue);
      const large = 'x'.repeat(MAX_MESSAGE_BYTES / 4);
      const small = Array.from({ length: 23 }, (_, index) => `small ${index}`);
      const bodies = [...small, large, large, large, large, large];
      assert.deepEqual(await queue.sender.send(bodies.map((body) => ({ body }))), []);
      await rig.until(() => assert.equal(seen.records.length, bodies.length));
      assert.deepEqual(seen.bodies().sort(), bodies.sort());
    });

    test('accepts a message of exactly the largest size, and rejects a larger one permanently', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen = collect(queue);
      const largest = 'x'.repeat(MAX_MESSAGE_BYTES);
      const failures = await queue.sender.send([{ body: `${largest}x` }, { body: largest }]);
      assert.deepEqual(
        failures.map(({ index, permanent }) => [index, permanent]),
        [[0, true]],
      );
      await rig.until(() => assert.equal(seen.records.length, 1));
      assert.deepEqual(seen.bodies(), [largest]);
    });

    test('delivers messages as Lambda does, and each handled message once', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const seen = collect(queue);
      await queue.sender.send([{ ...message('group', 'body'), attributes: { reason: 'because' } }]);
      await rig.until(() => assert.equal(seen.records.length, 1));
      await rig.pass(VISIBILITY_MS + 1000);
      const [record, ...more] = seen.records;
      assert.ok(record && more.length === 0);
      assert.equal(record.body, 'body');
      assert.equal(record.attributes.MessageGroupId, 'group');
      assert.equal(record.attributes.ApproximateReceiveCount, '1');
      assert.ok(Math.abs(Date.now() - Number(record.attributes.SentTimestamp)) < 60_000);
      assert.deepEqual(record.messageAttributes['reason'], {
        stringValue: 'because',
        stringListValues: [],
        binaryListValues: [],
        dataType: 'String',
      });
      assert.equal(record.eventSource, 'aws:sqs');
      const [, region] = /^arn:aws:sqs:([^:]+):\d{12}:.*node-deltas\.fifo$/.exec(record.eventSourceARN) ?? [];
      assert.equal(record.awsRegion, region);
    });

    test('never delivers a delayed message early', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen = collect(queue);
      const sentAt = Date.now();
      await queue.sender.send([
        { body: 'delayed', delaySeconds: 1 },
        { body: 'at once', delaySeconds: 0 },
      ]);
      await rig.until(() => assert.deepEqual(seen.bodies(), ['at once']));
      await rig.pass(1000);
      await rig.until(() => assert.deepEqual(seen.bodies(), ['at once', 'delayed']));
      assert.ok(Number(seen.cameAt[1]) - sentAt >= 1000, 'the delayed message came early');
    });

    test('redelivers a message after the requested time, and not before', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen: { at: number; what: string }[] = [];
      queue.consume(async ({ Records }) => {
        seen.push(...Records.map((record) => ({ at: Date.now(), what: bodyAndReceives(record) })));
        const first = Records.filter(isFirst);
        await queue.visibility.retryIn(first.map(({ receiptHandle }) => ({ receiptHandle, seconds: 1 })));
        return failed(first);
      });
      await queue.sender.send([{ body: 'retried' }]);
      await rig.until(() => assert.equal(seen.length, 1));
      await rig.pass(1000);
      await rig.until(() =>
        assert.deepEqual(
          seen.map(({ what }) => what),
          ['retried 1', 'retried 2'],
        ),
      );
      assert.ok(Number(seen[1]?.at) - Number(seen[0]?.at) >= 1000, 'the message came back early');
    });

    test('does not reject when the visibility of a message cannot be changed', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      await queue.visibility.retryIn([{ receiptHandle: 'no such receipt', seconds: 1 }]);
      assert.deepEqual(
        queue.log.lines.map(({ event }) => event),
        ['message.visibility-update-failed'],
      );
    });

    test('redelivers the reported messages, and deletes the others', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen: string[] = [];
      queue.consume(async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        const bad = Records.filter((record) => record.body === 'bad' && isFirst(record));
        await retryNow(queue, bad);
        return failed(bad);
      });
      await queue.sender.send([{ body: 'good' }, { body: 'bad' }]);
      await rig.until(() => assert.equal(seen.length, 3));
      await rig.pass(VISIBILITY_MS + 1000);
      assert.deepEqual(seen.sort(), ['bad 1', 'bad 2', 'good 1']);
    });

    test('redelivers all messages when the handler throws', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen: string[] = [];
      queue.consume(async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        if (!Records.some(isFirst)) return NOTHING_FAILED;
        await retryNow(queue, Records);
        throw new Error('broken');
      });
      await queue.sender.send([{ body: 'a' }]);
      await rig.until(() => assert.deepEqual(seen, ['a 1', 'a 2']));
      assert.deepEqual(
        queue.log.lines.map(({ event }) => event),
        ['batch.failed'],
      );
    });

    test('treats a batch as failed when its report names a message that was not in it', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const seen: string[] = [];
      queue.consume(async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        if (!Records.some(isFirst)) return NOTHING_FAILED;
        await retryNow(queue, Records);
        return { batchItemFailures: [{ itemIdentifier: 'unknown' }] };
      });
      await queue.sender.send([{ body: 'a' }]);
      await rig.until(() => assert.deepEqual(seen, ['a 1', 'a 2']));
    });

    test('redelivers failed messages after their visibility timeout', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const handledAt: number[] = [];
      queue.consume(async ({ Records }) => {
        handledAt.push(Date.now());
        return failed(Records.filter(isFirst));
      });
      const sentAt = Date.now();
      await queue.sender.send([{ body: 'a' }]);
      await rig.until(() => assert.equal(handledAt.length, 1));
      await rig.pass(VISIBILITY_MS);
      await rig.until(() => assert.equal(handledAt.length, 2));
      assert.ok(Number(handledAt[1]) - sentAt >= VISIBILITY_MS);
    });

    test('keeps the order of a group whose first message fails, while other groups proceed', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const blocked: SQSRecord[] = [];
      const handled: string[] = [];
      queue.consume(async ({ Records }) => {
        // A handler on a FIFO queue must also report the rest of a group behind a failed message.
        const bad = Records.filter((record) => record.attributes.MessageGroupId === 'a' && isFirst(record));
        blocked.push(...bad);
        handled.push(...Records.filter((record) => !bad.includes(record)).map(({ body }) => body));
        return failed(bad);
      });
      await queue.sender.send([message('a', 'a1'), message('b', 'b1')]);
      await rig.until(() => assert.deepEqual(handled, ['b1']));
      await queue.sender.send([message('a', 'a2'), message('b', 'b2')]);
      await rig.until(() => assert.deepEqual(handled, ['b1', 'b2']));
      assert.deepEqual(
        blocked.map(({ body }) => body),
        ['a1'],
      );
      await retryNow(queue, blocked);
      await rig.until(() => assert.equal(blocked[1]?.body, 'a2'));
      assert.deepEqual(handled, ['b1', 'b2', 'a1']);
    });

    test('dead-letters messages that fail as often as the queue allows, and proceeds with the next ones', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(fifo);
      const seen: string[] = [];
      queue.consume(
        async ({ Records }) => {
          seen.push(...Records.map(bodyAndReceives));
          const bad = Records.filter(({ body }) => body === 'poison');
          await retryNow(queue, bad);
          return failed(bad);
        },
        { batchSize: 1 },
      );
      await queue.sender.send([message('a', 'poison'), message('a', 'behind')]);
      await rig.until(() => assert.ok(seen.includes('behind 1')));
      const times = Array.from({ length: fifo.maxReceiveCount }, (_, index) => `poison ${index + 1}`);
      assert.deepEqual(seen, [...times, 'behind 1']);
      await rig.until(async () => assert.deepEqual(await queue.deadLetters(), ['poison']));
    });

    test('handles as many concurrent batches as allowed, and no more', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const gate = Promise.withResolvers<void>();
      let running = 0;
      let most = 0;
      let handled = 0;
      queue.consume(
        async () => {
          running += 1;
          most = Math.max(most, running);
          await gate.promise;
          running -= 1;
          handled += 1;
          return NOTHING_FAILED;
        },
        { batchSize: 1, concurrency: 3 },
      );
      await queue.sender.send(Array.from({ length: 8 }, (_, index) => ({ body: String(index) })));
      await rig.until(() => assert.equal(running, 3));
      gate.resolve();
      await rig.until(() => assert.equal(handled, 8));
      assert.equal(most, 3);
    });

    test('waits for messages in flight when stopping, and receives no more', async (context) => {
      const rig = await rigFor(context);
      const queue = await rig.open(standard);
      const gate = Promise.withResolvers<void>();
      const begun: string[] = [];
      const handled: string[] = [];
      let stopped = false;
      const consumer = queue.consume(
        async ({ Records }) => {
          begun.push(...Records.map(({ body }) => body));
          await gate.promise;
          handled.push(...Records.map(({ body }) => body));
          return NOTHING_FAILED;
        },
        { concurrency: 1 },
      );
      await queue.sender.send([{ body: 'in hand' }]);
      await rig.until(() => assert.deepEqual(begun, ['in hand']));
      const stopping = consumer.stop().then(() => {
        stopped = true;
      });
      await queue.sender.send([{ body: 'after' }]);
      assert.equal(stopped, false);
      gate.resolve();
      await stopping;
      assert.deepEqual(handled, ['in hand']);
      const next = collect(queue);
      await rig.until(() => assert.equal(next.records.length, 1));
      assert.deepEqual([handled, next.bodies()], [['in hand'], ['after']]);
    });
  });
}
