import {
  type BatchResultErrorEntry,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { QueueError, type QueueSender } from '#shared/state/sender.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from './limits.ts';
import { ATTRIBUTE_TYPE, messageBytes, type Numbered, SendFailures, withoutFaulty } from './sqs-message.ts';

/**
 * In one call, SQS may accept the second of two messages of a group but not the first. Both count as failed, and the
 * deduplication ID prevents a duplicate. `useQueueUrlAsEndpoint: false` if a queue is not reachable at its URL.
 */
export const sqsSender = (client: SQSClient, queueUrl: string): QueueSender => ({
  async send(messages) {
    const failures = new SendFailures();
    const batches = inBatches(withoutFaulty(messages, failures));
    for (const [at, planned] of batches.entries()) {
      const batch = planned.filter((each) => !failures.addIfBehind(each));
      if (batch.length === 0) continue;
      try {
        const Entries = batch.map(toEntry);
        const { Failed } = await client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
        addRefused(batch, Failed ?? [], failures);
      } catch (error) {
        if (at === 0) throw unreachable(queueUrl, error);
        // Messages of earlier calls are in the queue, so only the rest is sent again.
        const reason = `the queue could not be reached any more: ${errorMessage(error)}`;
        for (const each of batches.slice(at).flat()) failures.add(each, reason, false);
        break;
      }
    }
    return failures.list();
  },
});

const unreachable = (queueUrl: string, cause: unknown): QueueError =>
  new QueueError(
    `queue ${queueName(queueUrl)} could not be reached: ${errorMessage(cause)}; check that it exists and that sqs:SendMessage is granted`,
    { cause },
  );

/** Returns as few batches as SQS's limits allow, in order. No message is larger than a batch. */
function inBatches(messages: readonly Numbered[]): readonly (readonly Numbered[])[] {
  const batches: Numbered[][] = [];
  let batch: Numbered[] | undefined;
  let bytes = 0;
  for (const message of messages) {
    bytes += messageBytes(message.message);
    if (batch === undefined || batch.length === MAX_BATCH_MESSAGES || bytes > MAX_BATCH_BYTES) {
      batch = [];
      bytes = messageBytes(message.message);
      batches.push(batch);
    }
    batch.push(message);
  }
  return batches;
}

function addRefused(
  batch: readonly Numbered[],
  refused: readonly BatchResultErrorEntry[],
  failures: SendFailures,
): void {
  const entries = new Map(refused.map((entry) => [entry.Id, entry]));
  for (const message of batch) {
    const entry = entries.get(String(message.index));
    if (entry)
      failures.add(
        message,
        `${entry.Code}: ${entry.Message ?? 'no reason given'}`,
        entry.SenderFault ?? false,
      );
    else failures.addIfBehind(message);
  }
}

function toEntry({ index, message }: Numbered): SendMessageBatchRequestEntry {
  const { body, groupId, deduplicationId, delaySeconds, attributes = {} } = message;
  const messageAttributes = Object.entries(attributes).map(([name, value]) => [
    name,
    { DataType: ATTRIBUTE_TYPE, StringValue: value },
  ]);
  return {
    Id: String(index),
    MessageBody: body,
    MessageGroupId: groupId,
    MessageDeduplicationId: deduplicationId,
    DelaySeconds: delaySeconds,
    MessageAttributes: Object.fromEntries(messageAttributes),
  };
}

export function queueName(queueUrl: string): string {
  return queueUrl.slice(queueUrl.lastIndexOf('/') + 1);
}
