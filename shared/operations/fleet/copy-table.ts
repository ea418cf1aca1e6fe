import {
  type AttributeValue,
  BatchWriteItemCommand,
  type DynamoDBClient,
  paginateScan,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb';
import pMap from 'p-map';
import { dynamoDbStoreError } from '#shared/state/dynamodb/dynamodb-error.ts';
import { StoreError } from '#shared/state/store.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import type { DryRun } from './dry-run.ts';

/** Items in a BatchWriteItem request (DynamoDB's limit). */
const BATCH_PUTS = 25;
/** Concurrent batches. Few enough for a new table, which accepts 4,000 writes per second. */
const PARALLEL_BATCHES = 2;
/**
 * Attempts to write the items that DynamoDB left unprocessed. Together they take about two minutes, in which
 * a new table scales.
 */
const ATTEMPTS = 30;
const BACKOFF: Backoff = { firstMs: 50, longestMs: 5_000 };

type StoredItem = Record<string, AttributeValue>;

/**
 * Copies all items except leases from table `from` to table `to`, and overwrites existing items. Relays
 * acquire the leases again. Returns the number of items. Rejects with `StoreError`. Repeating the copy does
 * no harm. With `dryRun`, only counts the items.
 */
export async function copyTable(
  client: DynamoDBClient,
  from: string,
  to: string,
  { dryRun = false }: DryRun = {},
): Promise<number> {
  let copied = 0;
  for await (const items of pagesOf(client, from)) {
    const wanted = items.filter(({ sk }) => sk?.S !== 'LEASE');
    if (!dryRun)
      await pMap(chunksOf(wanted), (chunk) => putAll(client, to, chunk), { concurrency: PARALLEL_BATCHES });
    copied += wanted.length;
  }
  return copied;
}

async function* pagesOf(client: DynamoDBClient, TableName: string): AsyncIterable<readonly StoredItem[]> {
  try {
    for await (const { Items = [] } of paginateScan({ client }, { TableName, ConsistentRead: true }))
      yield Items;
  } catch (error) {
    throw dynamoDbStoreError(error, TableName);
  }
}

async function putAll(client: DynamoDBClient, table: string, items: readonly StoredItem[]): Promise<void> {
  let left: WriteRequest[] = items.map((Item) => ({ PutRequest: { Item } }));
  for (let attempt = 1; left.length > 0; attempt++) {
    if (attempt > ATTEMPTS) {
      throw new StoreError(
        `DynamoDB table ${table} is throttled: it did not accept ${left.length} items in ${ATTEMPTS} attempts. Try again later.`,
      );
    }
    if (attempt > 1) await pause(backoffMs(attempt - 1, BACKOFF));
    const { UnprocessedItems } = await client
      .send(new BatchWriteItemCommand({ RequestItems: { [table]: left } }))
      .catch((error: unknown) => {
        throw dynamoDbStoreError(error, table);
      });
    left = UnprocessedItems?.[table] ?? [];
  }
}

const chunksOf = (items: readonly StoredItem[]): readonly (readonly StoredItem[])[] =>
  Array.from({ length: Math.ceil(items.length / BATCH_PUTS) }, (_, index) =>
    items.slice(index * BATCH_PUTS, (index + 1) * BATCH_PUTS),
  );
