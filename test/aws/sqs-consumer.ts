import {
  DeleteMessageBatchCommand,
  type Message,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { SQSMessageAttribute, SQSRecord } from 'aws-lambda';
import { queueName } from '#shared/aws/sqs-sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type BatchHandler, handledOf } from './handled.ts';
import { queueArn } from './sqs-queues.ts';

export interface EventSource {
  /** Receives no more messages; resolves when the received messages are handled. */
  stop(): Promise<void>;
}

export interface SqsConsumerOptions {
  /** Messages in one event. */
  readonly batchSize: number;
  /** The number of concurrent batches. */
  readonly concurrency: number;
  readonly handler: BatchHandler;
  readonly log: Log;
  readonly client: SQSClient;
  readonly queueUrl: string;
}

/**
 * Seconds for which one call waits for messages. The time is short, so that `stop` need not abort a call. A message
 * that the queue delivers to an aborted call stays hidden until its visibility timeout.
 */
const WAIT_SECONDS = 1;

/** Passes a queue's messages to a handler by polling, as Lambda's event source mapping does. */
export function startSqsConsumer(options: SqsConsumerOptions): EventSource {
  const stopping = new AbortController();
  const polling = poll(options, stopping.signal);
  return {
    stop() {
      stopping.abort();
      return polling;
    },
  };
}

async function poll(options: SqsConsumerOptions, stopping: AbortSignal): Promise<void> {
  const inHand = new Set<Promise<void>>();
  const arn = await queueArn(options.client, options.queueUrl);
  while (!stopping.aborted) {
    const messages = await receive(options);
    if (messages.length === 0) continue;
    const handling = handle(
      messages.map((message) => toSqsRecord(message, arn)),
      options,
    ).finally(() => inHand.delete(handling));
    inHand.add(handling);
    if (inHand.size >= options.concurrency) await Promise.race(inHand);
  }
  await Promise.all(inHand);
}

async function receive({ client, queueUrl, batchSize }: SqsConsumerOptions): Promise<readonly Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: batchSize,
      WaitTimeSeconds: WAIT_SECONDS,
      MessageSystemAttributeNames: ['All'],
      MessageAttributeNames: ['All'],
    }),
  );
  return Messages;
}

async function handle(records: readonly SQSRecord[], options: SqsConsumerOptions): Promise<void> {
  const { client, queueUrl, handler, log } = options;
  const handled = await handledOf(records, handler, queueName(queueUrl), log);
  if (handled.length === 0) return;
  const entries = handled.map(({ receiptHandle }, index) => ({
    Id: String(index),
    ReceiptHandle: receiptHandle,
  }));
  await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }));
}

/** Returns a received message as Lambda would put it into an event. */
function toSqsRecord(message: Message, arn: string): SQSRecord {
  const { Attributes = {}, MessageAttributes = {} } = message;
  const attributes = Object.entries(MessageAttributes).map(([name, value]) => [name, toAttribute(value)]);
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    attributes: {
      ...Attributes,
      ApproximateReceiveCount: Attributes.ApproximateReceiveCount ?? '',
      SentTimestamp: Attributes.SentTimestamp ?? '',
      SenderId: Attributes.SenderId ?? '',
      ApproximateFirstReceiveTimestamp: Attributes.ApproximateFirstReceiveTimestamp ?? '',
    },
    messageAttributes: Object.fromEntries(attributes),
    md5OfBody: message.MD5OfBody ?? '',
    eventSource: 'aws:sqs',
    eventSourceARN: arn,
    awsRegion: arn.split(':')[3] ?? '',
  };
}

const toAttribute = ({ DataType = '', StringValue = '' }: MessageAttributeValue): SQSMessageAttribute => ({
  stringValue: StringValue,
  stringListValues: [],
  binaryListValues: [],
  dataType: DataType,
});
