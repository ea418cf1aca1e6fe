import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import middy from '@middy/core';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import pMap from 'p-map';
import * as z from 'zod';
import { invocation } from '#shared/aws/consume.ts';
import { dueGroupId, encodeDue } from '#shared/aws/due-message.ts';
import { messageJson } from '#shared/aws/sqs-message.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { type EvictionRecord, isTainted, type Partition } from '#shared/eviction/records.ts';
import { fromAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { parseScheduledItem, refOfItem, SCHEDULED_PREFIX } from '#shared/state/dynamodb/items.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { commitUnderLock, type Store, StoreError } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { Clock } from '#shared/time/clock.ts';

export interface ExpiryDeps {
  readonly store: Store;
  readonly dueQueue: QueueSender;
  readonly deadLetters: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
}

/** Maximum number of stream records in a batch. */
export const EXPIRY_BATCH_SIZE = 100;
const PARALLEL_NODES = 8;

/**
 * Makes the handler of the table's stream. If the time to live removes an eviction that is still scheduled,
 * its timer missed it. So the handler restores the eviction with a new time to live, and makes its node due.
 * Doing this twice does no harm.
 */
export function createHandler(deps: ExpiryDeps) {
  return middy<DynamoDBStreamEvent, DynamoDBBatchResponse>()
    .use(invocation({}))
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
            deps.log.error('eviction.recovery-failed', { ...ref, records: expired.length, error });
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

/** A pending eviction that its time to live removed. */
interface ExpiredRecord {
  readonly ref: NodeRef;
  readonly eviction: EvictionRecord;
  readonly source: DynamoDBRecord;
}

/** The identity that removes items whose time to live ended. */
export const TTL_IDENTITY = { type: 'Service', principalId: 'dynamodb.amazonaws.com' } as const;

const expiry = z.object({
  eventName: z.literal('REMOVE'),
  userIdentity: z.object({
    type: z.literal(TTL_IDENTITY.type),
    principalId: z.literal(TTL_IDENTITY.principalId),
  }),
  dynamodb: z.object({
    OldImage: z.object({ sk: z.object({ S: z.string().startsWith(SCHEDULED_PREFIX) }) }),
  }),
});

/**
 * Reads a record of the table's stream. Returns `undefined` unless it is the expiry of a pending eviction.
 * Ignored are other changes, manual deletions, and the expiry of ended or failed evictions. Throws
 * `StoreError` if the record is unreadable.
 */
function expiredRecord(source: DynamoDBRecord): ExpiredRecord | undefined {
  if (!readAs(expiry, source).success) return undefined;
  const item = fromAttributes((source.dynamodb?.OldImage ?? {}) as Record<string, AttributeValue>);
  const eviction = parseScheduledItem(item);
  return eviction.gaveUpAt === undefined ? { ref: refOfItem(item), eviction, source } : undefined;
}

/** An unreadable record becomes a dead letter; rejects if that fails. */
async function readOrRefuse(record: DynamoDBRecord, deps: ExpiryDeps): Promise<ExpiredRecord | undefined> {
  try {
    return expiredRecord(record);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    deps.log.error('stream-record.rejected', { error });
    const [failure] = await deps.deadLetters.send([
      { body: messageJson(record), attributes: { reason: error.message } },
    ]);
    if (failure) throw new Error(`the dead-letter queue rejected a stream record: ${failure.reason}`);
    return undefined;
  }
}

/** Delay of the message, after which its records are certainly restored. */
const PUT_BACK_SECONDS = 10;

/**
 * Restores the expired records of one node and makes the node due. The message is sent first, so that a crash
 * only sends it twice. Records that an earlier attempt restored, newer records, and ends are kept. If one
 * node cannot be written, its whole batch is redelivered, and must not make the other nodes due each time.
 */
async function restore(expired: readonly ExpiredRecord[], deps: ExpiryDeps): Promise<void> {
  const [first] = expired;
  if (!first) return;
  const { ref } = first;
  const { store, clock, dueQueue, log } = deps;
  const records = expired.map(({ eviction }) => eviction);
  const uids = records.map(({ uid }) => uid);
  const missingIn = ({ scheduled, ended }: Partition) =>
    records.filter(({ uid }) => !scheduled.has(uid) && !ended.has(uid));
  if (missingIn(await store.load(ref, clock.now(), uids)).length === 0) return;
  const body = encodeDue({ ...ref, at: clock.now() });
  const [failure] = await dueQueue.send([
    { body, groupId: dueGroupId(ref.cluster), delaySeconds: PUT_BACK_SECONDS },
  ]);
  if (failure) throw new Error(`evictions-due rejected the message: ${failure.reason}`);
  const restored = await commitUnderLock(store, ref, uids, clock, (partition) => {
    const schedule = missingIn(partition);
    if (schedule.length === 0) return { result: schedule };
    const live = isTainted(partition.node);
    return { result: schedule, change: { schedule, end: [], live } };
  });
  for (const record of restored) log.warn('eviction.recovered', evictionFields(ref, record));
}
