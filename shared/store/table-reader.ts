import {
  BatchGetItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  paginateQuery,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { type Item, toAttribute } from './attribute-values.ts';
import { chunksOf } from './chunks.ts';
import { orStoreError } from './dynamodb-error.ts';
import { DUE_INDEX } from './dynamodb-table.ts';
import { StoreError } from './store.ts';

/** Keys in one BatchGetItem (DynamoDB's limit). */
const BATCH_GET_KEYS = 100;
/** Keys read from the index at a time, to fill one BatchGetItem. */
const INDEX_PAGE_ITEMS = BATCH_GET_KEYS;
/** How often keys that DynamoDB left out of its answer are asked for again; together some 2 s. */
const UNPROCESSED_ATTEMPTS = 10;
const UNPROCESSED_BACKOFF: Backoff = { firstMs: 50, longestMs: 400 };

/** Reads of the one table, strongly consistent but for the index. All reject with `StoreError`. */
export class TableReader {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;

  constructor(client: DynamoDBClient, tableName: string) {
    this.#client = client;
    this.#tableName = tableName;
  }

  /** One item. */
  async get(key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName: this.#tableName, Key: key, ConsistentRead: true });
    return (await orStoreError(this.#tableName, this.#client.send(command))).Item;
  }

  /** The items of a partition whose sort key starts with `prefix`, those that pass the filter. */
  async *query(
    pk: string,
    prefix: string,
    filter: Pick<
      QueryCommandInput,
      'FilterExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
    > = {},
  ): AsyncIterable<Item> {
    const pages = this.#pages({
      ...filter,
      KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
      ExpressionAttributeValues: {
        ...filter.ExpressionAttributeValues,
        ':pk': toAttribute(pk),
        ':prefix': toAttribute(prefix),
      },
      ConsistentRead: true,
    });
    for await (const page of pages) yield* page;
  }

  /** Whichever of these items are there, in any order. The keys are distinct. */
  async *batchGet(keys: readonly Item[]): AsyncIterable<Item> {
    for (const chunk of chunksOf(keys, BATCH_GET_KEYS)) yield* this.#batchGetChunk(chunk);
  }

  async *#batchGetChunk(keys: readonly Item[]): AsyncIterable<Item> {
    let missing: Item[] = [...keys];
    for (let attempt = 1; missing.length > 0; attempt++) {
      if (attempt > UNPROCESSED_ATTEMPTS) {
        throw new StoreError(
          `DynamoDB table ${this.#tableName} left ${missing.length} items unread in ${UNPROCESSED_ATTEMPTS} attempts: it is throttled; raise its limits if that lasts.`,
        );
      }
      if (attempt > 1) await pause(backoffMs(attempt - 1, UNPROCESSED_BACKOFF));
      const command = new BatchGetItemCommand({
        RequestItems: { [this.#tableName]: { Keys: missing, ConsistentRead: true } },
      });
      const answer = await orStoreError(this.#tableName, this.#client.send(command));
      yield* answer.Responses?.[this.#tableName] ?? [];
      missing = answer.UnprocessedKeys?.[this.#tableName]?.Keys ?? [];
    }
  }

  /** Keys of one of the index's partitions, in order, a page at a time; may lag behind by a moment. */
  indexPages(duePk: string): AsyncIterable<readonly Item[]> {
    return this.#pages(
      {
        IndexName: DUE_INDEX,
        KeyConditionExpression: 'duePk = :duePk',
        ExpressionAttributeValues: { ':duePk': toAttribute(duePk) },
      },
      INDEX_PAGE_ITEMS,
    );
  }

  async *#pages(
    query: Omit<QueryCommandInput, 'TableName'>,
    pageSize?: number,
  ): AsyncIterable<readonly Item[]> {
    const settings = { client: this.#client, ...(pageSize === undefined ? {} : { pageSize }) };
    const pages = paginateQuery(settings, { ...query, TableName: this.#tableName });
    while (true) {
      const { done, value } = await orStoreError(this.#tableName, pages.next());
      if (done) return;
      yield value.Items ?? [];
    }
  }
}
