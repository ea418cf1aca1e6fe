import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { SQSClient } from '@aws-sdk/client-sqs';
import { QUEUES, type QueueSpec } from '#shared/aws/queue-set.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { sqsVisibility } from '#shared/aws/sqs-visibility.ts';
import { QueueError } from '#shared/state/sender.ts';
import { type AwsEndpoint, awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { receiveSome } from '#test/aws/received.ts';
import { startSqsConsumer } from '#test/aws/sqs-consumer.ts';
import { createQueue } from '#test/aws/sqs-queues.ts';
import { eventually } from '../eventually.ts';
import { type QueueUnderTest, queueContract } from '../queue-contract.ts';
import { recordingLog } from '../recording-log.ts';

describe('SQS', () => {
  let endpoint: AwsEndpoint;
  let client: SQSClient;
  before(async () => {
    endpoint = await awsEndpoint();
    client = new SQSClient({ ...awsClientConfig(endpoint.url), useQueueUrlAsEndpoint: false });
  });
  after(async () => {
    client.destroy();
    await endpoint.close();
  });

  queueContract(
    'SQS',
    async (context) => ({
      pass: (ms) => delay(ms),
      until: async (check) => eventually(async () => check()),
      async open(spec: QueueSpec): Promise<QueueUnderTest> {
        const log = recordingLog();
        const { url: queueUrl, dlqUrl } = await createQueue(client, spec, `${randomUUID()}-`);
        const letters: string[] = [];
        return {
          log,
          sender: sqsSender(client, queueUrl),
          visibility: sqsVisibility(client, queueUrl, log),
          consume(handler, { batchSize = 10, concurrency = 2 } = {}) {
            const consumer = startSqsConsumer({ client, queueUrl, handler, batchSize, concurrency, log });
            context.after(() => consumer.stop());
            return consumer;
          },
          async deadLetters() {
            letters.push(...(await receiveSome(client, dlqUrl)).map(({ Body = '' }) => Body));
            return letters;
          },
        };
      },
    }),
    { concurrency: true },
  );

  describe('without the queue', () => {
    let queueUrl: string;
    before(async () => {
      const { url } = await createQueue(client, QUEUES.evictionsDue, `${randomUUID()}-`);
      queueUrl = `${url}-missing`;
    });

    test('rejects sending', async () => {
      await assert.rejects(sqsSender(client, queueUrl).send([{ body: 'lost' }]), QueueError);
    });

    test('does not reject changes of visibility', async () => {
      const log = recordingLog();
      const nowhere = sqsVisibility(client, queueUrl, log);
      await nowhere.retryIn([{ receiptHandle: 'no such receipt', seconds: 1 }]);
      assert.deepEqual(
        log.lines.map(({ event }) => event),
        ['message.visibility-update-failed'],
      );
    });
  });
});
