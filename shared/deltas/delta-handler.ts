import { processPartialResponse, SqsFifoPartialProcessorAsync } from '@aws-lambda-powertools/batch';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { Delta } from '#shared/eviction/facts.ts';
import { deadLetter, receiveCount } from '#shared/queues/dead-letter.ts';
import { DELTA_MAX_RECEIVES } from '#shared/queues/queue-set.ts';
import { withinDeadline } from '#shared/queues/record-deadline.ts';
import type { QueueSender, VisibilityControl } from '#shared/queues/sender.ts';
import { type ApplyDeltaDeps, applyDelta } from './apply-delta.ts';
import { decodeDelta, MalformedDeltaError } from './message.ts';

/** What a delta handler needs: the world a delta is applied to, and where messages go that nobody can read. */
export interface DeltaHandlerDeps extends ApplyDeltaDeps {
  readonly deadLetters: QueueSender;
  readonly visibility: VisibilityControl;
}

/** The longest batch the event source may hand over. */
export const DELTA_BATCH_SIZE = 5;
/**
 * One record's share of the function's time. A function that times out fails its whole batch, so a batch of the
 * longest kind must end before the queue's `functionTimeoutSeconds` even when every record uses up its share.
 */
export const DELTA_RECORD_DEADLINE_MS = 5_000;

/**
 * The Lambda handler of a delta queue. Within a batch, records of one node are applied in order; after one that
 * fails, the rest of that node's are given back too, and other nodes go on. A message that is no delta, or not
 * of a kind this queue carries, goes to the dead-letter queue at once with the reason as an attribute: retried
 * in place it would block its node until the queue gives up.
 */
export function createDeltaHandler(deps: DeltaHandlerDeps, kinds: readonly Delta['kind'][]) {
  const recordHandler = async (record: SQSRecord): Promise<void> => {
    let delta: Delta;
    try {
      delta = decodeDelta(record.body);
      if (!kinds.includes(delta.kind)) {
        throw new MalformedDeltaError(
          `delta message refused: kind: this queue carries ${kinds.join(' and ')}, not ${delta.kind}`,
        );
      }
    } catch (error) {
      if (!(error instanceof MalformedDeltaError)) throw error;
      await deadLetter(record, error, deps.deadLetters, deps.log);
      return;
    }
    try {
      await withinDeadline(DELTA_RECORD_DEADLINE_MS, applyDelta(delta, deps));
    } catch (error) {
      deps.log.warn('delta.retried', { ...delta.ref, reason: error, receives: receiveCount(record) });
      throw error;
    }
  };
  return middy<SQSEvent, SQSBatchResponse>().handler(async (event) => {
    const response = await processPartialResponse(event, recordHandler, new SqsFifoPartialProcessorAsync(), {
      skipGroupOnError: true,
      // All failed is no reason to throw: the response says so, and a thrown batch says less.
      throwOnFullBatchFailure: false,
    });
    const failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    const retried = event.Records.filter(({ messageId }) => failed.has(messageId));
    // A node's later deltas wait for those given back, the skipped ones too, so none is left to its visibility.
    await deps.visibility.retryIn(
      retried.map((record) => ({
        receiptHandle: record.receiptHandle,
        seconds: deltaRetrySeconds(receiveCount(record)),
      })),
    );
    return response;
  });
}

/**
 * 1, 6, 36 and 216 s: a lost race is made up for at once, and a table that is away for minutes outlived. After the
 * last try at once, because only then the queue dead-letters the message and lets its node go on.
 */
const deltaRetrySeconds = (receives: number): number =>
  receives < DELTA_MAX_RECEIVES ? 6 ** (receives - 1) : 0;
