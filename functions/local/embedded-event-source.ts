import type { SQSRecord } from 'aws-lambda';
import { type BatchHandler, handledOf } from '#shared/queues/handled.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EmbeddedQueue } from './embedded-queue.ts';

export interface EventSourceOptions {
  readonly queue: EmbeddedQueue;
  /** Messages in one event. */
  readonly batchSize: number;
  /** Batches that are handled at a time. */
  readonly concurrency: number;
  readonly handler: BatchHandler;
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
