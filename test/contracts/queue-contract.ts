import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { MAX_MESSAGE_BYTES } from '#shared/queues/limits.ts';
import {
  createQueue,
  createQueues,
  DELTA_MAX_RECEIVES,
  EVICTIONS_DUE_MAX_RECEIVES,
  QUEUES,
  type QueueUrls,
  visibilitySeconds,
} from '#shared/queues/queue-set.ts';
import { QueueError } from '#shared/queues/sender.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { eventSourceContract } from './event-source-contract.ts';
import { consume, receive, untilEmpty } from './received.ts';
import { recordingLog } from './recording-log.ts';

/** Something that speaks the SQS API. */
export interface SqsUnderTest {
  readonly client: SQSClient;
  close(): Promise<void>;
}

/** What the queues and our adapters on them hold to, on whatever SQS `open` gives. */
export function queueContract(name: string, open: () => Promise<SqsUnderTest>): void {
  describe(`${name} keeps the contract of queues`, { concurrency: true }, () => {
    let sqs: SqsUnderTest;
    const fifo = () => createQueue(sqs.client, QUEUES.nodeDeltas, `${randomUUID()}-`);
    const standard = () => createQueue(sqs.client, QUEUES.evictionsDue, `${randomUUID()}-`);
    const sender = ({ url }: QueueUrls) => new SqsSender({ client: sqs.client, queueUrl: url });

    before(async () => {
      sqs = await open();
    });
    after(() => sqs.close());

    const message = (group: string, body: string) => ({
      body,
      groupId: group,
      deduplicationId: randomUUID(),
    });

    test('keeps the order of a group', async () => {
      const queue = await fifo();
      const bodies = Array.from({ length: 25 }, (_, index) => `a${index}`);
      assert.deepEqual(await sender(queue).send(bodies.map((body) => message('a', body))), []);
      assert.deepEqual(await consume(sqs.client, queue.url, 25), bodies);
    });

    test('sends nothing of a group behind a message that failed, and all of the other groups', async () => {
      const queue = await fifo();
      const oversize = 'x'.repeat(MAX_MESSAGE_BYTES + 1);
      const failures = await sender(queue).send([
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
      assert.deepEqual(await sender(queue).send([message('a', 'a4')]), []);
      const bodies = await consume(sqs.client, queue.url, 4);
      assert.deepEqual(
        bodies.filter((body) => body.startsWith('a')),
        ['a1', 'a4'],
      );
      assert.deepEqual(
        bodies.filter((body) => body.startsWith('b')),
        ['b1', 'b2'],
      );
      await untilEmpty(sqs.client, queue.url);
    });

    test('withholds a group while a message of it is in flight, but no other group', async () => {
      const queue = await fifo();
      await sender(queue).send([message('a', 'a1')]);
      const [inFlight] = await receive(sqs.client, queue.url, 1);
      await sender(queue).send([message('a', 'a2'), message('b', 'b1')]);
      assert.deepEqual(await consume(sqs.client, queue.url, 1), ['b1']);
      assert.equal(inFlight?.Body, 'a1');
      await visibility(queue).retryIn([{ receiptHandle: inFlight?.ReceiptHandle ?? '', seconds: 0 }]);
      assert.deepEqual(await consume(sqs.client, queue.url, 2), ['a1', 'a2']);
    });

    test('takes a message with a known deduplication id without queueing it again', async () => {
      const queue = await fifo();
      const twice = message('a', 'once');
      assert.deepEqual(await sender(queue).send([twice]), []);
      assert.deepEqual(await sender(queue).send([twice, message('a', 'next')]), []);
      assert.deepEqual(await consume(sqs.client, queue.url, 2), ['once', 'next']);
      await untilEmpty(sqs.client, queue.url);
    });

    test('sends more than one call holds, by count and by bytes', async () => {
      const queue = await standard();
      const large = 'x'.repeat(MAX_MESSAGE_BYTES / 4);
      const bodies = [
        ...Array.from({ length: 23 }, (_, index) => `small ${index}`),
        large,
        large,
        large,
        large,
        large,
      ];
      assert.deepEqual(await sender(queue).send(bodies.map((body) => ({ body }))), []);
      const received = await consume(sqs.client, queue.url, bodies.length);
      assert.deepEqual(received.sort(), bodies.sort());
    });

    test('takes a message of exactly the largest size, and refuses a larger one for good', async () => {
      const queue = await standard();
      const largest = 'x'.repeat(MAX_MESSAGE_BYTES);
      const failures = await sender(queue).send([{ body: `${largest}x` }, { body: largest }]);
      assert.deepEqual(
        failures.map(({ index, permanent }) => [index, permanent]),
        [[0, true]],
      );
      assert.deepEqual(await consume(sqs.client, queue.url, 1), [largest]);
    });

    test('carries attributes', async () => {
      const queue = await standard();
      await sender(queue).send([{ body: 'unreadable', attributes: { reason: 'message: is not JSON' } }]);
      const [received] = await receive(sqs.client, queue.url, 1);
      assert.equal(received?.MessageAttributes?.['reason']?.StringValue, 'message: is not JSON');
    });

    test('never delivers a delayed message early', async () => {
      const queue = await standard();
      const sentAt = Date.now();
      await sender(queue).send([
        { body: 'delayed', delaySeconds: 1 },
        { body: 'at once', delaySeconds: 0 },
      ]);
      assert.deepEqual(await consume(sqs.client, queue.url, 2), ['at once', 'delayed']);
      assert.ok(Date.now() - sentAt >= 1000, 'the delayed message came early');
    });

    test('shows a message again after the time asked for, and not before', async () => {
      const queue = await standard();
      await sender(queue).send([{ body: 'retried' }]);
      const [first] = await receive(sqs.client, queue.url, 1);
      const askedAt = Date.now();
      await visibility(queue).retryIn([{ receiptHandle: first?.ReceiptHandle ?? '', seconds: 1 }]);
      const [second] = await receive(sqs.client, queue.url, 1);
      assert.ok(Date.now() - askedAt >= 1000, 'the message came back early');
      assert.equal(second?.Body, 'retried');
      assert.equal(second?.Attributes?.ApproximateReceiveCount, '2');
    });

    test('does not reject when the visibility of a message cannot be changed', async () => {
      const queue = await standard();
      const log = recordingLog();
      const unknown = new SqsVisibility({ client: sqs.client, queueUrl: queue.url, log });
      await unknown.retryIn([{ receiptHandle: 'no such receipt', seconds: 1 }]);
      const { url } = queue;
      const nowhere = new SqsVisibility({ client: sqs.client, queueUrl: `${url}-missing`, log });
      await nowhere.retryIn([{ receiptHandle: 'no such receipt', seconds: 1 }]);
      assert.deepEqual(
        log.lines.map(({ event }) => event),
        ['visibility.unchanged', 'visibility.unchanged'],
      );
    });

    test('dead-letters a message that was received as often as its queue allows', async () => {
      const queue = await fifo();
      await sender(queue).send([message('a', 'poison'), message('a', 'behind')]);
      for (let receives = 0; receives < DELTA_MAX_RECEIVES; receives++) {
        const [poison] = await receive(sqs.client, queue.url, 1);
        assert.equal(poison?.Body, 'poison');
        await visibility(queue).retryIn([{ receiptHandle: poison?.ReceiptHandle ?? '', seconds: 0 }]);
      }
      assert.deepEqual(await consume(sqs.client, queue.url, 1), ['behind']);
      assert.deepEqual(await consume(sqs.client, queue.dlqUrl, 1), ['poison']);
    });

    test('rejects when the queue cannot be reached', async () => {
      const { url } = await standard();
      const nowhere = new SqsSender({ client: sqs.client, queueUrl: `${url}-missing` });
      await assert.rejects(nowhere.send([{ body: 'lost' }]), QueueError);
    });

    test('creates every queue with its dead-letter queue, and does so again without harm', async () => {
      const prefix = `${randomUUID()}-`;
      const created = await createQueues(sqs.client, prefix);
      await sender(created.evictionsDue).send([{ body: 'kept' }]);
      assert.deepEqual(await createQueues(sqs.client, prefix), created);
      assert.deepEqual(await consume(sqs.client, created.evictionsDue.url, 1), ['kept']);
      const due = await attributesOf(created.evictionsDue.url);
      const letters = await attributesOf(created.evictionsDue.dlqUrl);
      assert.deepEqual(JSON.parse(due['RedrivePolicy'] ?? ''), {
        deadLetterTargetArn: letters['QueueArn'],
        maxReceiveCount: EVICTIONS_DUE_MAX_RECEIVES,
      });
      assert.equal(due['MessageRetentionPeriod'], String(4 * 24 * 3600));
      assert.equal(letters['MessageRetentionPeriod'], String(14 * 24 * 3600));
      const deltas = await attributesOf(created.nodeDeltas.url);
      assert.equal(deltas['DeduplicationScope'], 'messageGroup');
      assert.equal(deltas['FifoThroughputLimit'], 'perMessageGroupId');
      assert.equal(deltas['VisibilityTimeout'], String(visibilitySeconds(QUEUES.nodeDeltas)));
    });

    const visibility = ({ url }: QueueUrls) =>
      new SqsVisibility({ client: sqs.client, queueUrl: url, log: recordingLog() });

    async function attributesOf(queueUrl: string): Promise<Record<string, string>> {
      const { Attributes = {} } = await sqs.client.send(
        new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['All'] }),
      );
      return Attributes;
    }

    eventSourceContract(() => sqs.client);
  });
}
