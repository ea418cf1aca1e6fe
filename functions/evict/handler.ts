import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { type EpochMs, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { deadLetter, receiveCount } from '#shared/queues/dead-letter.ts';
import { EVICTIONS_DUE_MAX_RECEIVES } from '#shared/queues/queue-set.ts';
import { withinDeadline } from '#shared/queues/record-deadline.ts';
import type { QueueSender, VisibilityControl } from '#shared/queues/sender.ts';
import { type DueMessage, parseDueMessage } from '#shared/timers/due-message.ts';
import { type EvictDeps, EvictionsFailedError, evictNode } from './evict-node.ts';
import { cancellingDeletion, gaveUpDeletion } from './pod-events.ts';
import { postEvents } from './post-events.ts';
import { retryDelaySeconds } from './retry-backoff.ts';
import { SingleFlight } from './single-flight.ts';

export interface EvictHandlerDeps extends EvictDeps {
  readonly visibility: VisibilityControl;
  readonly deadLetters: QueueSender;
}

/** The longest batch the event source may hand over: small, so that a slow cluster's node holds up few others. */
export const EVICT_BATCH_SIZE = 5;
/** What the work of one message may take: less than the function may, because all of a batch are done at once. */
export const EVICT_RECORD_DEADLINE_MS = 50_000;

/**
 * Handles `evictions-due`: "look at that node". A message whose work failed comes back after a growing delay,
 * for as long as the queue keeps it; then it is a dead letter.
 */
export function createHandler(deps: EvictHandlerDeps) {
  const passes = new SingleFlight();

  const perform = async (message: DueMessage): Promise<void> => {
    const ref: NodeRef = { cluster: message.cluster, node: message.node };
    if (message.kind === 'cancelled') {
      const api = await deps.clusters.api(ref.cluster);
      await postEvents(
        api,
        message.pods.map((pod) => cancellingDeletion(pod, message.version)),
        deps,
      );
    } else if (message.at > deps.clock.now()) {
      await deps.timers.arm(ref, await momentsUpTo(message.at, ref));
    } else {
      await passes.run(nodeKey(ref), (free) => evictNode(ref, deps, free));
    }
  };

  /** A timer sent ahead of time, because none reaches further, waits for the exact moments the records name. */
  const momentsUpTo = async (at: EpochMs, ref: NodeRef): Promise<readonly EpochMs[]> => {
    const { evictions } = await deps.store.load(ref, { kind: 'due', now: at });
    return [...new Set([...evictions.values()].map(({ fireAt }) => fireAt))];
  };

  const handleRecord = async (record: SQSRecord): Promise<boolean> => {
    let message: DueMessage;
    try {
      message = parseDueMessage(record.body);
    } catch (error) {
      await deadLetter(record, error as Error, deps.deadLetters, deps.log);
      return true;
    }
    try {
      await withinDeadline(EVICT_RECORD_DEADLINE_MS, perform(message));
      return true;
    } catch (error) {
      await retryLater(record, message, error, deps);
      return false;
    }
  };

  /** What cannot even be set aside or retried is left to its visibility timeout. */
  const leave = (record: SQSRecord) => (error: unknown) => {
    deps.log.error('message.stuck', { messageId: record.messageId, reason: error });
    return false;
  };

  return middy<SQSEvent, SQSBatchResponse>().handler(async (event) => {
    const handled = await Promise.all(
      event.Records.map(async (record) => ({ record, ok: await handleRecord(record).catch(leave(record)) })),
    );
    const failed = handled.filter(({ ok }) => !ok);
    return { batchItemFailures: failed.map(({ record }) => ({ itemIdentifier: record.messageId })) };
  });
}

async function retryLater(
  record: SQSRecord,
  message: DueMessage,
  error: unknown,
  deps: EvictHandlerDeps,
): Promise<void> {
  const { cluster, node } = message;
  const receives = receiveCount(record);
  // Those met pod by pod are counted where they are met.
  if (error instanceof ApiError) deps.metrics.requestRefused();
  if (receives >= EVICTIONS_DUE_MAX_RECEIVES) {
    deps.log.error('eviction.gave-up', { cluster, node, receives, reason: error });
    if (error instanceof EvictionsFailedError) {
      const api = await deps.clusters.api(cluster);
      await postEvents(api, error.pods.map(gaveUpDeletion), deps);
    }
    return;
  }
  const answered = error instanceof EvictionsFailedError || error instanceof ApiError;
  const asked = answered ? error.retryAfterSeconds : undefined;
  const seconds = retryDelaySeconds(receives, asked);
  deps.metrics.retried();
  deps.log.warn('eviction.retried', { cluster, node, receives, retryInSeconds: seconds, reason: error });
  await deps.visibility.retryIn([{ receiptHandle: record.receiptHandle, seconds }]);
}
