import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  paginateQuery,
  type QueryCommandInput,
  TransactionConflictException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import pMap from 'p-map';
import { defined } from '#shared/defined.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { StoreError } from '../store.ts';
import { dynamoDbStoreError, lostRace } from './dynamodb-error.ts';
import {
  fromAttributes,
  type Item,
  type Key,
  toAttributes,
  type Update,
  updateExpression,
  type Write,
} from './dynamodb-item.ts';
import { CLUSTER_INDEX } from './table-definition.ts';

/** Actions in one transaction (DynamoDB's limit). */
export const TRANSACTION_ACTIONS = 100;
/** Keys in one BatchGetItem (DynamoDB's limit). */
const BATCH_GET_KEYS = 100;
/** Deletes in one BatchWriteItem (DynamoDB's limit). */
const BATCH_WRITE_KEYS = 25;
/** Concurrent batches of deletes: a full node (110 pods) takes two round trips. */
const BATCH_WRITE_CONCURRENCY = 4;
/**
 * Attempts at keys left out of a batch, or an item that a transaction holds, in about 2 s. The SDK does not retry
 * these.
 */
const ATTEMPTS = 10;
const BACKOFF: Backoff = { firstMs: 50, longestMs: 400 };

/**
 * The one table: attribute values, expressions, pages, and the limits of batches stay inside. Reads are strongly
 * consistent, except for the keys that the index lists. Every method rejects with `StoreError`.
 */
export class DynamoDbTable {
  readonly #client: DynamoDBClient;
  readonly #name: string;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#name = tableName;
  }

  /** Returns one item, whole. Without `consistent`, the item may be briefly outdated, at half the price. */
  async get(key: Key, { consistent = true } = {}): Promise<Item | undefined> {
    const command = new GetItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ConsistentRead: consistent,
    });
    const { Item } = await this.#orStoreError(this.#client.send(command));
    return Item && fromAttributes(Item);
  }

  /**
   * Returns a partition's items with sort keys from `from` to `to` or the last, in order; `backward`: the last first.
   */
  async *query(pk: string, from: string, to?: string, { backward = false } = {}): AsyncIterable<Item> {
    const pages = this.#pages({
      KeyConditionExpression:
        to === undefined ? 'pk = :pk AND sk >= :from' : 'pk = :pk AND sk BETWEEN :from AND :to',
      ExpressionAttributeValues: toAttributes({ ':pk': pk, ':from': from, ':to': to }),
      ConsistentRead: true,
      ScanIndexForward: !backward,
    });
    for await (const page of pages) yield* page;
  }

  /**
   * Returns those items that exist, in any order. Without `consistent`: perhaps briefly outdated, at half the price.
   */
  async *batchGet(keys: readonly Key[], { consistent = true } = {}): AsyncIterable<Item> {
    for (const chunk of chunksOf(distinct(keys), BATCH_GET_KEYS)) {
      let missing = chunk.map((key) => toAttributes(key));
      for (let attempt = 1; missing.length > 0; attempt++) {
        await this.#awaitTurn(attempt, missing.length);
        const command = new BatchGetItemCommand({
          RequestItems: { [this.#name]: { Keys: missing, ConsistentRead: consistent } },
        });
        const { Responses, UnprocessedKeys } = await this.#orStoreError(this.#client.send(command));
        yield* (Responses?.[this.#name] ?? []).map(fromAttributes);
        missing = UnprocessedKeys?.[this.#name]?.Keys ?? [];
      }
    }
  }

  /**
   * The index lags briefly and holds only keys, so each item is read from the table. `beginning`: the prefix of the
   * partition keys that belong under the index key; items that other writers add under it are not read. With `from`,
   * yields the items from there on, the last first.
   */
  async *indexed(clusterKey: string, beginning = '', from?: string): AsyncIterable<Item> {
    const since = from === undefined ? '' : ' AND clusterSort >= :from';
    const pages = this.#pages(
      {
        IndexName: CLUSTER_INDEX,
        KeyConditionExpression: `clusterKey = :clusterKey${since}`,
        ExpressionAttributeValues: toAttributes({ ':clusterKey': clusterKey, ':from': from }),
        ScanIndexForward: from === undefined,
      },
      BATCH_GET_KEYS,
    );
    for await (const page of pages) {
      const items = await Array.fromAsync(this.batchGet(keysOf(page, beginning)));
      const order = new Map(page.map(({ pk, sk }, index) => [`${pk}\n${sk}`, index]));
      const rank = ({ pk, sk }: Item) => order.get(`${pk}\n${sk}`) ?? 0;
      yield* items.sort((a, b) => rank(a) - rank(b));
    }
  }

  /** Puts an item, whole. Returns `false` if the item already exists. */
  add(item: Item): Promise<boolean> {
    return this.#put(item, 'attribute_not_exists(pk)');
  }

  /** Puts an item, whole, in place of the stored one. Returns `false` if there is none. */
  replace(item: Item): Promise<boolean> {
    return this.#put(item, 'attribute_exists(pk)');
  }

  /** Returns the item after the update, which creates it if necessary. `undefined`: the item is not as expected. */
  async update(update: Update): Promise<Item | undefined> {
    const command = new UpdateItemCommand({ ...this.#updateInput(update), ReturnValues: 'ALL_NEW' });
    const answer = await this.#write(() => this.#client.send(command));
    return answer && fromAttributes(answer.Attributes ?? {});
  }

  async delete(key: Key): Promise<Item | undefined> {
    const command = new DeleteItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ReturnValues: 'ALL_OLD',
    });
    const answer = await this.#write(() => this.#client.send(command));
    return answer?.Attributes && fromAttributes(answer.Attributes);
  }

  /** Deletes any number of items, if they exist. When it rejects, some of them may be deleted. */
  async batchDelete(keys: readonly Key[]): Promise<void> {
    const deleteChunk = async (chunk: readonly Key[]): Promise<void> => {
      let left = chunk.map((key) => toAttributes(key));
      for (let attempt = 1; left.length > 0; attempt++) {
        await this.#awaitTurn(attempt, left.length);
        const deletes = left.map((Key) => ({ DeleteRequest: { Key } }));
        const command = new BatchWriteItemCommand({ RequestItems: { [this.#name]: deletes } });
        const answer = await this.#write(() => this.#client.send(command));
        const unprocessed = answer?.UnprocessedItems?.[this.#name] ?? [];
        left = unprocessed.map(({ DeleteRequest }) => DeleteRequest?.Key).filter((key) => key !== undefined);
      }
    };
    await pMap(chunksOf(distinct(keys), BATCH_WRITE_KEYS), deleteChunk, {
      concurrency: BATCH_WRITE_CONCURRENCY,
    });
  }

  /**
   * Performs all writes or none: at most `TRANSACTION_ACTIONS`, each of another item. `false`: an item is not as
   * expected, or is being written by others.
   */
  async transact(writes: readonly Write[]): Promise<boolean> {
    const command = new TransactWriteItemsCommand({
      TransactItems: writes.map((write) => this.#action(write)),
    });
    try {
      await this.#client.send(command);
      return true;
    } catch (error) {
      if (lostRace(error)) return false;
      throw dynamoDbStoreError(error, this.#name);
    }
  }

  async tag(name: string): Promise<string | undefined> {
    const describe = new DescribeTableCommand({ TableName: this.#name });
    const { Table } = await this.#orStoreError(this.#client.send(describe));
    let next: string | undefined;
    do {
      const list = new ListTagsOfResourceCommand({ ResourceArn: Table?.TableArn, NextToken: next });
      const { Tags = [], NextToken } = await this.#orStoreError(this.#client.send(list));
      const found = Tags.find(({ Key }) => Key === name);
      if (found) return found.Value;
      next = NextToken;
    } while (next !== undefined);
    return undefined;
  }

  #action(write: Write): TransactWriteItem {
    if ('put' in write) return { Put: { TableName: this.#name, Item: toAttributes(write.put) } };
    if ('delete' in write) return { Delete: { TableName: this.#name, Key: toAttributes(write.delete) } };
    return { Update: this.#updateInput(write.update) };
  }

  #updateInput(update: Update) {
    return { TableName: this.#name, Key: toAttributes(update.key), ...updateExpression(update) };
  }

  async #put(item: Item, ConditionExpression: string): Promise<boolean> {
    const Item = toAttributes(item);
    const command = new PutItemCommand({ TableName: this.#name, Item, ConditionExpression });
    return (await this.#write(() => this.#client.send(command))) !== undefined;
  }

  async *#pages(
    query: Omit<QueryCommandInput, 'TableName'>,
    pageSize?: number,
  ): AsyncIterable<readonly Item[]> {
    const settings = { client: this.#client, ...defined({ pageSize }) };
    const pages = paginateQuery(settings, { ...query, TableName: this.#name });
    try {
      for await (const { Items = [] } of pages) yield Items.map(fromAttributes);
    } catch (error) {
      throw dynamoDbStoreError(error, this.#name);
    }
  }

  async #awaitTurn(attempt: number, left: number): Promise<void> {
    if (attempt > ATTEMPTS) {
      throw new StoreError(
        `DynamoDB table ${this.#name} left out ${left} items of a batch in ${ATTEMPTS} attempts: it is throttled; raise its limits if that lasts.`,
      );
    }
    if (attempt > 1) await pause(backoffMs(attempt - 1, BACKOFF));
  }

  /** Retries a write while a transaction holds the item. `undefined`: the item is not as expected. */
  async #write<T>(send: () => Promise<T>): Promise<T | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send();
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return undefined;
        if (!(error instanceof TransactionConflictException) || attempt === ATTEMPTS) {
          throw dynamoDbStoreError(error, this.#name);
        }
        await pause(backoffMs(attempt, BACKOFF));
      }
    }
  }

  async #orStoreError<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw dynamoDbStoreError(error, this.#name);
    }
  }
}

const keysOf = (page: readonly Item[], beginning: string): readonly Key[] =>
  page.map(({ pk, sk }) => ({ pk: `${pk}`, sk: `${sk}` })).filter(({ pk }) => pk.startsWith(beginning));

const distinct = (keys: readonly Key[]): readonly Key[] => [
  ...new Map(keys.map((key) => [`${key.pk}\n${key.sk}`, key])).values(),
];

function chunksOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}
