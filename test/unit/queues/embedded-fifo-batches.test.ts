import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { createQueue, QUEUES } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';

test('one receive takes several messages of a group, and those that come back keep their order', async () => {
  const { client, close } = await startEmbeddedSqs();
  try {
    const { url } = await createQueue(client, QUEUES.podDeltas);
    const bodies = ['1', '2', '3', '4'];
    await new SqsSender({ client, queueUrl: url }).send(
      bodies.map((body) => ({ body, groupId: 'a', deduplicationId: body })),
    );
    const first = await receiveOnce(client, url);
    assert.deepEqual(
      first.map(({ Body }) => Body),
      bodies,
    );
    assert.deepEqual(await receiveOnce(client, url), []);
    const [handled, ...failed] = first;
    await client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle: handled?.ReceiptHandle }));
    for (const { ReceiptHandle } of failed) {
      assert.deepEqual(await receiveOnce(client, url), []);
      await client.send(
        new ChangeMessageVisibilityCommand({ QueueUrl: url, ReceiptHandle, VisibilityTimeout: 0 }),
      );
    }
    const again = await receiveOnce(client, url);
    assert.deepEqual(
      again.map(({ Body }) => Body),
      ['2', '3', '4'],
    );
  } finally {
    await close();
  }
});

async function receiveOnce(client: SQSClient, queueUrl: string): Promise<readonly Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10 }),
  );
  return Messages;
}
