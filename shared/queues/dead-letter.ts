import type { SQSRecord } from 'aws-lambda';
import type { Log } from '#shared/telemetry/log.ts';
import type { QueueSender } from './sender.ts';

/**
 * Sets a message aside that nobody can read, with its reason as an attribute. Retried in place it would come
 * again until the queue gives up, and on a FIFO queue hold its node up meanwhile. Rejects when the dead-letter
 * queue did not take it, so that the queue keeps it.
 */
export async function deadLetter(
  record: SQSRecord,
  reason: Error,
  queue: QueueSender,
  log: Log,
): Promise<void> {
  const groupId = record.attributes.MessageGroupId;
  const [failure] = await queue.send([
    {
      body: record.body,
      ...(groupId === undefined ? {} : { groupId, deduplicationId: record.messageId }),
      attributes: { reason: reason.message },
    },
  ]);
  if (failure)
    throw new Error(`the dead-letter queue refused message ${record.messageId}: ${failure.reason}`);
  log.error('message.refused', { messageId: record.messageId, reason });
}

/** How often a message was received, this time included. */
export const receiveCount = (record: SQSRecord): number => Number(record.attributes.ApproximateReceiveCount);
