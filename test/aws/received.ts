import assert from 'node:assert/strict';
import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { eventually } from '#test/contracts/eventually.ts';

/** Receives the next messages of a queue, in order; waits for `count` of them. The messages stay in flight. */
async function receive(client: SQSClient, queueUrl: string, count: number): Promise<Message[]> {
  const received: Message[] = [];
  await eventually(async () => {
    received.push(...(await receiveSome(client, queueUrl, count - received.length)));
    assert.equal(received.length, count, `messages received from ${queueUrl}`);
  });
  return received;
}

/** Returns messages that a queue delivers within a second; they stay in flight. */
export async function receiveSome(
  client: SQSClient,
  queueUrl: string,
  most = 10,
): Promise<readonly Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: Math.min(most, 10),
      WaitTimeSeconds: 1,
    }),
  );
  return Messages;
}

/**
 * Returns the bodies of the next messages, each deleted before the next is received, so that a group's messages arrive
 * in order.
 */
export async function consume(client: SQSClient, queueUrl: string, count: number): Promise<string[]> {
  const bodies: string[] = [];
  while (bodies.length < count) {
    const [message] = await receive(client, queueUrl, 1);
    bodies.push(message?.Body ?? '');
    await client.send(
      new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle: message?.ReceiptHandle }),
    );
  }
  return bodies;
}

/** Returns the number of messages in a queue, by their state. */
export async function countsOf(client: SQSClient, queueUrl: string) {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['All'] }),
  );
  return {
    visible: Number(Attributes['ApproximateNumberOfMessages']),
    inFlight: Number(Attributes['ApproximateNumberOfMessagesNotVisible']),
    delayed: Number(Attributes['ApproximateNumberOfMessagesDelayed']),
  };
}

/** Waits until a queue holds no message, neither visible nor in flight nor delayed. */
export async function untilEmpty(client: SQSClient, queueUrl: string): Promise<void> {
  await eventually(async () => {
    assert.deepEqual(await countsOf(client, queueUrl), { visible: 0, inFlight: 0, delayed: 0 });
  });
}
