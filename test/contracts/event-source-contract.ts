import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { type EventSourceOptions, startEventSource } from '#shared/queues/event-source.ts';
import { createQueue, DELTA_MAX_RECEIVES, QUEUES, type QueueUrls } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { eventually } from './eventually.ts';
import { consume, countsOf, untilEmpty } from './received.ts';
import { recordingLog } from './recording-log.ts';

const NOTHING_FAILED: SQSBatchResponse = { batchItemFailures: [] };
const failed = (records: readonly SQSRecord[]): SQSBatchResponse => ({
  batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })),
});

const bodyAndReceives = ({ body, attributes }: SQSRecord) => `${body} ${attributes.ApproximateReceiveCount}`;
const isFirst = ({ attributes }: SQSRecord) => attributes.ApproximateReceiveCount === '1';

/** What the one-process event source holds to on an SQS; Lambda's own does the same. */
export function eventSourceContract(client: () => SQSClient): void {
  describe('event source', { concurrency: true }, () => {
    const fifo = () => createQueue(client(), QUEUES.nodeDeltas, `${randomUUID()}-`);
    const standard = () => createQueue(client(), QUEUES.evictionsDue, `${randomUUID()}-`);
    const sender = ({ url }: QueueUrls) => new SqsSender({ client: client(), queueUrl: url });
    const message = (group: string, body: string) => ({
      body,
      groupId: group,
      deduplicationId: randomUUID(),
    });

    /** Starts an event source that ends with the test. */
    function start(
      context: TestContext,
      { url }: QueueUrls,
      handler: (event: SQSEvent) => Promise<SQSBatchResponse>,
      options: Partial<EventSourceOptions> = {},
    ) {
      const log = recordingLog();
      const source = startEventSource({
        client: client(),
        queueUrl: url,
        batchSize: 10,
        concurrency: 2,
        handler,
        log,
        ...options,
      });
      context.after(() => source.stop());
      return { source, log };
    }

    test('hands messages over as Lambda does, and deletes them once they are handled', async (context) => {
      const queue = await fifo();
      const events: SQSEvent[] = [];
      start(context, queue, async (event) => {
        events.push(event);
        return NOTHING_FAILED;
      });
      await sender(queue).send([{ ...message('group', 'body'), attributes: { reason: 'because' } }]);
      await untilEmpty(client(), queue.url);
      const [record, ...more] = events.flatMap(({ Records }) => Records);
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
      assert.match(record.eventSourceARN, /^arn:aws:sqs:us-east-1:\d{12}:.*-node-deltas\.fifo$/);
      assert.equal(record.awsRegion, 'us-east-1');
    });

    test('shows the reported messages again, and deletes the others', async (context) => {
      const queue = await standard();
      const seen: string[] = [];
      start(context, queue, async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        const bad = Records.filter((record) => record.body === 'bad' && isFirst(record));
        await visibleAgain(queue, bad);
        return failed(bad);
      });
      await sender(queue).send([{ body: 'good' }, { body: 'bad' }]);
      await untilEmpty(client(), queue.url);
      assert.deepEqual(seen.sort(), ['bad 1', 'bad 2', 'good 1']);
    });

    test('shows all messages again when the handler throws', async (context) => {
      const queue = await standard();
      const seen: string[] = [];
      const { log } = start(context, queue, async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        if (!Records.some(isFirst)) return NOTHING_FAILED;
        await visibleAgain(queue, Records);
        throw new Error('broken');
      });
      await sender(queue).send([{ body: 'a' }]);
      await untilEmpty(client(), queue.url);
      assert.deepEqual(seen, ['a 1', 'a 2']);
      assert.deepEqual(
        log.lines.map(({ event }) => event),
        ['batch.failed'],
      );
    });

    test('counts a batch as failed when its report names a message that was not in it', async (context) => {
      const queue = await standard();
      const seen: string[] = [];
      start(context, queue, async ({ Records }) => {
        seen.push(...Records.map(bodyAndReceives));
        if (!Records.some(isFirst)) return NOTHING_FAILED;
        await visibleAgain(queue, Records);
        return { batchItemFailures: [{ itemIdentifier: 'unknown' }] };
      });
      await sender(queue).send([{ body: 'a' }]);
      await untilEmpty(client(), queue.url);
      assert.deepEqual(seen, ['a 1', 'a 2']);
    });

    test('leaves what failed to its visibility timeout', async (context) => {
      const queue = await standard();
      const handledAt: number[] = [];
      const options = { visibilityTimeoutSeconds: 1 };
      const handler = async ({ Records }: SQSEvent) => {
        handledAt.push(Date.now());
        return Records.some(isFirst) ? failed(Records) : NOTHING_FAILED;
      };
      const sentAt = Date.now();
      start(context, queue, handler, options);
      await sender(queue).send([{ body: 'a' }]);
      await untilEmpty(client(), queue.url);
      assert.ok(handledAt.length > 1 && Number(handledAt[1]) - sentAt >= 1000);
    });

    test('keeps the order of a group whose first message fails, while other groups go on', async (context) => {
      const queue = await fifo();
      const blocked: SQSRecord[] = [];
      const handled: string[] = [];
      start(context, queue, async ({ Records }) => {
        // As a handler on a FIFO queue must: behind a message that failed, the rest of its group has failed too.
        const bad = Records.filter((record) => record.attributes.MessageGroupId === 'a' && isFirst(record));
        blocked.push(...bad);
        handled.push(...Records.filter((record) => !bad.includes(record)).map(({ body }) => body));
        return failed(bad);
      });
      await sender(queue).send([message('a', 'a1'), message('b', 'b1')]);
      await eventually(async () => assert.deepEqual(handled, ['b1']));
      await sender(queue).send([message('a', 'a2'), message('b', 'b2')]);
      await eventually(async () => assert.deepEqual(handled, ['b1', 'b2']));
      assert.deepEqual(
        blocked.map(({ body }) => body),
        ['a1'],
      );
      await visibleAgain(queue, blocked);
      await eventually(async () => assert.equal(blocked[1]?.body, 'a2'));
      assert.deepEqual(handled, ['b1', 'b2', 'a1']);
    });

    test('dead-letters what fails as often as the queue allows', async (context) => {
      const queue = await fifo();
      const receives: string[] = [];
      start(
        context,
        queue,
        async ({ Records }) => {
          receives.push(...Records.map(({ attributes }) => attributes.ApproximateReceiveCount));
          return failed(Records);
        },
        { visibilityTimeoutSeconds: 0 },
      );
      await sender(queue).send([message('a', 'poison')]);
      assert.deepEqual(await consume(client(), queue.dlqUrl, 1), ['poison']);
      assert.equal(receives.length, DELTA_MAX_RECEIVES);
    });

    test('handles as many batches at a time as allowed, and no more', async (context) => {
      const queue = await standard();
      const gate = Promise.withResolvers<void>();
      let running = 0;
      let most = 0;
      const { source } = start(
        context,
        queue,
        async () => {
          running += 1;
          most = Math.max(most, running);
          await gate.promise;
          running -= 1;
          return NOTHING_FAILED;
        },
        { batchSize: 1, concurrency: 3 },
      );
      await sender(queue).send(Array.from({ length: 8 }, (_, index) => ({ body: String(index) })));
      await eventually(async () => assert.equal(running, 3));
      gate.resolve();
      await untilEmpty(client(), queue.url);
      await source.stop();
      assert.equal(most, 3);
    });

    test('stop waits for what is in hand, and takes nothing more', async (context) => {
      const queue = await standard();
      const gate = Promise.withResolvers<void>();
      const handled: string[] = [];
      let stopped = false;
      const { source } = start(
        context,
        queue,
        async ({ Records }) => {
          await gate.promise;
          handled.push(...Records.map(({ body }) => body));
          return NOTHING_FAILED;
        },
        { concurrency: 1 },
      );
      await sender(queue).send([{ body: 'in hand' }]);
      await untilInFlight(queue);
      const stopping = source.stop().then(() => {
        stopped = true;
      });
      await sender(queue).send([{ body: 'after' }]);
      assert.equal(stopped, false);
      gate.resolve();
      await stopping;
      assert.deepEqual(handled, ['in hand']);
      assert.deepEqual(await consume(client(), queue.url, 1), ['after']);
      await untilEmpty(client(), queue.url);
    });

    test('goes on once a queue that was not there comes', async (context) => {
      const prefix = `${randomUUID()}-`;
      const elsewhere = await standard();
      const url = elsewhere.url.replace(/[^/]*$/, `${prefix}${QUEUES.evictionsDue.name}`);
      const handled: string[] = [];
      const { log } = start(context, { ...elsewhere, url }, async ({ Records }) => {
        handled.push(...Records.map(({ body }) => body));
        return NOTHING_FAILED;
      });
      await eventually(async () => assert.equal(log.lines[0]?.event, 'queue.unreachable'));
      const queue = await createQueue(client(), QUEUES.evictionsDue, prefix);
      await sender(queue).send([{ body: 'late' }]);
      await untilEmpty(client(), queue.url);
      assert.deepEqual(handled, ['late']);
    });

    /** Ends the visibility timeout of messages that a handler has or had. */
    async function visibleAgain({ url }: QueueUrls, records: readonly SQSRecord[]): Promise<void> {
      const visibility = new SqsVisibility({ client: client(), queueUrl: url, log: recordingLog() });
      await visibility.retryIn(records.map(({ receiptHandle }) => ({ receiptHandle, seconds: 0 })));
    }

    async function untilInFlight({ url }: QueueUrls): Promise<void> {
      await eventually(async () => {
        assert.equal((await countsOf(client(), url)).inFlight, 1);
      });
    }
  });
}
