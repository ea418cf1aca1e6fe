import { ChangeMessageVisibilityBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Log } from '#shared/telemetry/log.ts';
import { MAX_BATCH_MESSAGES, MAX_VISIBILITY_SECONDS } from './limits.ts';
import { queueName } from './sqs-sender.ts';

export interface VisibilityControl {
  /** Makes received messages visible again after `seconds` (0 to 43,200). Best effort: never rejects. */
  retryIn(messages: readonly { readonly receiptHandle: string; readonly seconds: number }[]): Promise<void>;
}

/** If this fails, the message keeps its visibility timeout. */
export const sqsVisibility = (client: SQSClient, queueUrl: string, log: Log): VisibilityControl => ({
  async retryIn(messages) {
    for (let from = 0; from < messages.length; from += MAX_BATCH_MESSAGES) {
      const entries = messages
        .slice(from, from + MAX_BATCH_MESSAGES)
        .map(({ receiptHandle, seconds }, index) => ({
          Id: String(index),
          ReceiptHandle: receiptHandle,
          VisibilityTimeout: Math.min(Math.max(Math.ceil(seconds), 0), MAX_VISIBILITY_SECONDS),
        }));
      const failures: readonly unknown[] = await client
        .send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: queueUrl, Entries: entries }))
        .then(
          ({ Failed = [] }) => Failed.map(({ Message }) => Message),
          (error: unknown) => [error],
        );
      for (const error of failures)
        log.warn('message.visibility-update-failed', { queue: queueName(queueUrl), error });
    }
  },
});
