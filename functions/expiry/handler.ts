import middy from '@middy/core';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import pMap from 'p-map';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import { commitUnderLock } from '#shared/store/commit-under-lock.ts';
import { type Store, StoreError } from '#shared/store/store.ts';
import { invocation } from '#shared/telemetry/invocation.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { encodeDue } from '#shared/timers/due-message.ts';
import { type ExpiredRecord, expiredRecord } from './expired-record.ts';

export interface ExpiryDeps {
  readonly store: Store;
  /** `evictions-due`. */
  readonly dueQueue: QueueSender;
  readonly deadLetters: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
}

/** Stream records the event source may hand over at once. */
export const EXPIRY_BATCH_SIZE = 100;
/** Nodes that are restored at a time. */
const PARALLEL_NODES = 8;

/**
 * Handles the table's stream: an eviction that is removed by its time to live while it is still scheduled was missed
 * by its timer, so it is put back, with a new time to live, and is due work again. In that order: a crash in between
 * leaves a record that is found once more, by the stream's retry or by its time to live. Doing it twice does no harm.
 */
export function createHandler(deps: ExpiryDeps) {
  return middy<DynamoDBStreamEvent, DynamoDBBatchResponse>()
    .use(invocation())
    .handler(async ({ Records: records }) => {
      const failed: DynamoDBRecord[] = [];
      const work = await pMap(records, (record) =>
        readOrRefuse(record, deps).catch(() => void failed.push(record)),
      );
      const nodes = Map.groupBy(
        work.filter((each) => each !== undefined),
        ({ ref }) => nodeKey(ref),
      );
      await pMap(
        nodes.values(),
        async (expired) => {
          try {
            await restore(expired, deps);
          } catch (error) {
            const [{ ref } = {}] = expired;
            deps.log.error('eviction.not-restored', { ...ref, records: expired.length, reason: error });
            failed.push(...expired.map(({ source }) => source));
          }
        },
        { concurrency: PARALLEL_NODES },
      );
      return {
        batchItemFailures: failed.map(({ dynamodb }) => ({ itemIdentifier: dynamodb?.SequenceNumber ?? '' })),
      };
    });
}

/** What is to be put back, if anything. Sets a record aside that cannot be read; rejects when that fails. */
async function readOrRefuse(record: DynamoDBRecord, deps: ExpiryDeps): Promise<ExpiredRecord | undefined> {
  try {
    return expiredRecord(record);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    deps.log.error('record.refused', { reason: error });
    const [failure] = await deps.deadLetters.send([
      { body: JSON.stringify(record), attributes: { reason: error.message } },
    ]);
    if (failure) throw new Error(`the dead-letter queue refused a stream record: ${failure.reason}`);
    return undefined;
  }
}

/** Puts the expired records of one node back and has the node looked at. */
async function restore(expired: readonly ExpiredRecord[], deps: ExpiryDeps): Promise<void> {
  const [first] = expired;
  if (!first) return;
  const waiting = await putBack(
    first.ref,
    expired.map(({ eviction }) => eviction),
    deps,
  );
  if (waiting.length === 0) return;
  const at = Math.min(...waiting.map(({ fireAt }) => fireAt));
  const [failure] = await deps.dueQueue.send([{ body: encodeDue({ ...first.ref, at }) }]);
  if (failure) throw new Error(`evictions-due refused the message: ${failure.reason}`);
  for (const { uid, namespace, name: pod, fireAt } of waiting) {
    deps.log.warn('eviction.restored', { ...first.ref, namespace, pod, uid, fireAt });
  }
}

/** Those of the records that are scheduled now: put back, or there again already. A newer record or an end stands. */
function putBack(
  ref: NodeRef,
  records: readonly EvictionRecord[],
  { store, clock }: ExpiryDeps,
): Promise<readonly EvictionRecord[]> {
  const uids = records.map(({ uid }) => uid);
  return commitUnderLock(store, ref, uids, clock, ({ scheduled, ended, node }) => {
    const result = records.filter(({ uid }) => scheduled.has(uid) || !ended.has(uid));
    const schedule = records.filter(({ uid }) => !scheduled.has(uid) && !ended.has(uid));
    if (schedule.length === 0) return { result };
    return { result, change: { schedule, end: [], live: (node?.taints.length ?? 0) > 0 } };
  });
}
