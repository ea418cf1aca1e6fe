import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  type Message,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { z } from 'zod';
import { until } from '#test/cluster/rig/until.ts';

const RedrivePolicy = z.looseObject({ maxReceiveCount: z.coerce.number() });

export interface QueueDepth {
  readonly visible: number;
  readonly inFlight: number;
  readonly delayed: number;
}

/** One deployed queue, with the operations of an operator. */
export class DeployedQueue {
  readonly url: string;
  readonly #client: SQSClient;

  private constructor(client: SQSClient, url: string) {
    this.#client = client;
    this.url = url;
  }

  static async named(client: SQSClient, name: string): Promise<DeployedQueue> {
    const { QueueUrl = '' } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
    return new DeployedQueue(client, QueueUrl);
  }

  async depth(): Promise<QueueDepth> {
    const attributes = await this.#attributes();
    const number = (name: string) => Number(attributes[`ApproximateNumberOfMessages${name}`]);
    return { visible: number(''), inFlight: number('NotVisible'), delayed: number('Delayed') };
  }

  /** Waits until no message is visible or in flight. */
  async idle(): Promise<void> {
    await until(`${this.url} is handled`, async () => {
      const { visible, inFlight } = await this.depth();
      return visible + inFlight === 0;
    });
  }

  async send(body: string, fifo?: { readonly group: string; readonly id: string }): Promise<void> {
    await this.#client.send(
      new SendMessageCommand({
        QueueUrl: this.url,
        MessageBody: body,
        ...(fifo ? { MessageGroupId: fifo.group, MessageDeduplicationId: fifo.id } : {}),
      }),
    );
  }

  /** Removes all messages, including the delayed ones. */
  async purge(): Promise<void> {
    await this.#client.send(new PurgeQueueCommand({ QueueUrl: this.url }));
  }

  /** Returns a message, if there is one, and makes it visible to others again immediately. */
  async peek(): Promise<Message | undefined> {
    const message = await this.#receive();
    if (message?.ReceiptHandle) await this.#show(message.ReceiptHandle);
    return message;
  }

  /** Sends all messages to another queue, as a redrive by SQS does, which the stand-in lacks. Returns their number. */
  async moveTo(queue: DeployedQueue): Promise<number> {
    for (let moved = 0; ; moved++) {
      const message = await this.#receive();
      if (!message) return moved;
      const {
        Body = '',
        MessageId: id = '',
        Attributes: { MessageGroupId: group } = {},
        ReceiptHandle,
      } = message;
      await queue.send(Body, group === undefined ? undefined : { group, id });
      await this.#client.send(new DeleteMessageCommand({ QueueUrl: this.url, ReceiptHandle }));
    }
  }

  /**
   * Runs `action` while the queue dead-letters messages after fewer receives, so that the test need not wait for
   * minutes.
   */
  async givingUpAfter(receives: number, action: () => Promise<void>): Promise<void> {
    const { RedrivePolicy: policy = '' } = await this.#attributes();
    const redrive = RedrivePolicy.parse(JSON.parse(policy));
    await this.#setRedrive(JSON.stringify({ ...redrive, maxReceiveCount: receives }));
    try {
      await action();
    } finally {
      await this.#setRedrive(policy);
    }
  }

  async #setRedrive(policy: string): Promise<void> {
    await this.#client.send(
      new SetQueueAttributesCommand({ QueueUrl: this.url, Attributes: { RedrivePolicy: policy } }),
    );
  }

  async #attributes(): Promise<Partial<Record<string, string>>> {
    const command = new GetQueueAttributesCommand({ QueueUrl: this.url, AttributeNames: ['All'] });
    return (await this.#client.send(command)).Attributes ?? {};
  }

  async #receive(): Promise<Message | undefined> {
    const { Messages = [] } = await this.#client.send(
      new ReceiveMessageCommand({
        QueueUrl: this.url,
        MaxNumberOfMessages: 1,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
    );
    return Messages[0];
  }

  async #show(receiptHandle: string): Promise<void> {
    await this.#client.send(
      new ChangeMessageVisibilityCommand({
        QueueUrl: this.url,
        ReceiptHandle: receiptHandle,
        VisibilityTimeout: 0,
      }),
    );
  }
}
