import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { Log } from '#shared/telemetry/log.ts';
import type { EmbeddedQueue } from './embedded-queue.ts';

export interface EventSourceOptions {
  readonly queue: EmbeddedQueue;
  /** Messages in one event. */
  readonly batchSize: number;
  /** Batches that are handled at a time. */
  readonly concurrency: number;
  readonly handler: (event: SQSEvent) => Promise<SQSBatchResponse>;
  readonly log: Log;
}

export interface EventSource {
  /** Takes no more messages; resolves when those that were taken are handled. */
  stop(): Promise<void>;
}

/**
 * Hands a queue's messages to a handler, as soon as they are there, as Lambda's event source mapping does with
 * `ReportBatchItemFailures`: messages that the handler does not report are deleted; those it reports, or all when it
 * throws or reports one that is not in the batch, are left to their visibility, until the queue dead-letters them.
 */
export function startEventSource(options: EventSourceOptions): EventSource {
  const { queue, batchSize, concurrency } = options;
  const inHand = new Set<Promise<void>>();
  let offered = false;
  let stopped = false;
  // One batch a turn: a burst of work that waits for nothing would else keep the process from hearing anything.
  const offer = (): void => {
    if (offered || stopped) return;
    offered = true;
    setImmediate(() => {
      offered = false;
      if (stopped || inHand.size >= concurrency) return;
      const records = queue.receive(batchSize);
      if (records.length === 0) return;
      const handling = handle(records, options).finally(() => {
        inHand.delete(handling);
        offer();
      });
      inHand.add(handling);
      offer();
    });
  };
  queue.onVisible(offer);
  offer();
  return {
    async stop() {
      stopped = true;
      await Promise.all(inHand);
    },
  };
}

async function handle(
  records: readonly SQSRecord[],
  { queue, handler, log }: EventSourceOptions,
): Promise<void> {
  const { name } = queue.spec;
  for (const { messageId, receiptHandle } of await handledOf(records, handler, name, log)) {
    if (queue.delete(receiptHandle)) continue;
    log.warn('message.not-deleted', {
      queue: name,
      messageId,
      reason: 'it was seen again before it was handled',
    });
  }
}

/**
 * The records of a batch that a handler handled, as Lambda understands its report. Never rejects: what goes wrong shows in
 * the log, and in messages that come again.
 */
export async function handledOf(
  records: readonly SQSRecord[],
  handler: EventSourceOptions['handler'],
  queue: string,
  log: Log,
): Promise<readonly SQSRecord[]> {
  const fail = (reason: unknown) => {
    log.warn('batch.failed', { queue, messages: records.length, reason });
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
