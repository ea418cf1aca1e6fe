import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { Log } from '#shared/telemetry/log.ts';

/** Handles a batch of messages, and reports those that failed. */
export type BatchHandler = (event: SQSEvent) => Promise<SQSBatchResponse>;

/**
 * Returns the records that a handler handled, by Lambda's rules for its report. Never rejects: failures are logged,
 * and their messages are redelivered.
 */
export async function handledOf(
  records: readonly SQSRecord[],
  handler: BatchHandler,
  queue: string,
  log: Log,
): Promise<readonly SQSRecord[]> {
  const fail = (reason: unknown) => {
    log.warn('batch.failed', { queue, messages: records.length, error: reason });
    return [];
  };
  try {
    const { batchItemFailures } = await handler({ Records: [...records] });
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    const handled = records.filter(({ messageId }) => !failed.has(messageId));
    // Lambda does the same: a report that names a message outside the batch counts as a failure of the whole batch.
    return handled.length + failed.size === records.length
      ? handled
      : fail('a message was reported that is not in it');
  } catch (error) {
    return fail(error);
  }
}
