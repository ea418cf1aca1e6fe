import assert from 'node:assert/strict';
import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { eventually } from '#test/contracts/eventually.ts';

/** The next messages that a queue gives, in order; waits for `count` of them. They stay in flight. */
async function receive(client: SQSClient, queueUrl: string, count: number): Promise<Message[]> {
  const received: Message[] = [];
  await eventually(async () => {
    received.push(...(await receiveSome(client, queueUrl, count - received.length)));
    assert.equal(received.length, count, `messages received from ${queueUrl}`);
  });
  return received;
}

/** Messages that a queue gives within a second; they stay in flight. */
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

/** The bodies of the next messages, each deleted before the next is asked for: what a group gives, in order. */
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

/** How many messages a queue holds. */
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
