import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { Log } from '#shared/telemetry/log.ts';

/** Handles a batch of messages, and reports those that it did not. */
export type BatchHandler = (event: SQSEvent) => Promise<SQSBatchResponse>;

/**
 * The records of a batch that a handler handled, as Lambda understands its report. Never rejects: what goes wrong shows in
 * the log, and in messages that come again.
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
    // As Lambda does: a report that names no message of the batch says nothing about the others either.
    return handled.length + failed.size === records.length
      ? handled
      : fail('a message was reported that is not in it');
  } catch (error) {
    return fail(error);
  }
}
