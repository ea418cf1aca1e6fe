import {
  type AttributeValue,
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
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import pMap from 'p-map';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { StoreError } from '../store.ts';
import { dynamoDbStoreError } from './dynamodb-error.ts';
import { CLUSTER_INDEX } from './table-definition.ts';

/** Actions in one transaction (DynamoDB's limit). */
export const TRANSACTION_ACTIONS = 100;
/** Keys in one BatchGetItem (DynamoDB's limit). */
const BATCH_GET_KEYS = 100;
/** Deletes in one BatchWriteItem (DynamoDB's limit). */
const BATCH_WRITE_KEYS = 25;
/** Batches of deletes under way at once: a full node (110 pods) in two round trips. */
const BATCH_WRITE_CONCURRENCY = 4;
/**
 * How often what DynamoDB left out of a batch, or what a transaction holds, is tried again; together some 2 s. The SDK
 * leaves this to us.
 */
const ATTEMPTS = 10;
const BACKOFF: Backoff = { firstMs: 50, longestMs: 400 };

/** An item, or some of its attributes, as plain values: text, numbers, booleans, lists, objects. */
export type Item = Readonly<Record<string, unknown>>;

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Some of an item's attributes are changed; all others, known to this version of the code or not, stay. */
export interface Update {
  readonly key: Key;
  /** `undefined` = removed. */
  readonly set?: Item;
  /** Added to what is stored, or to 0. */
  readonly add?: Readonly<Record<string, number>>;
  /** What the stored item must say for anything to be written; `undefined` = has no such attribute. */
  readonly expected?: Item;
  /** Between which numbers what is stored must be, both included. */
  readonly within?: Readonly<Record<string, readonly [number, number]>>;
  /** Below which number what is stored must be, if there is such an attribute. */
  readonly below?: Readonly<Record<string, number>>;
}

/** One action of a transaction. */
export type Write = { readonly put: Item } | { readonly update: Update } | { readonly delete: Key };

/**
 * The one table. Its items are plain objects here; attribute values, expressions, pages and the limits of batches stay
 * inside. Reads are strongly consistent, but for what the index names. Every method rejects with `StoreError`.
 */
export class DynamoDbTable {
  readonly #client: DynamoDBClient;
  readonly #name: string;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#name = tableName;
  }

  /** One item, whole; unless `consistent`, as it was a moment ago, at half the price. */
  async get(key: Key, { consistent = true } = {}): Promise<Item | undefined> {
    const command = new GetItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ConsistentRead: consistent,
    });
    const { Item } = await this.#orStoreError(this.#client.send(command));
    return Item && fromAttributes(Item);
  }

  /** The items of a partition with sort keys from `from` on, up to `to` or the last, in their order. */
  async *query(pk: string, from: string, to?: string): AsyncIterable<Item> {
    const pages = this.#pages({
      KeyConditionExpression:
        to === undefined ? 'pk = :pk AND sk >= :from' : 'pk = :pk AND sk BETWEEN :from AND :to',
      ExpressionAttributeValues: toAttributes({ ':pk': pk, ':from': from, ':to': to }),
      ConsistentRead: true,
    });
    for await (const page of pages) yield* page;
  }

  /** The items of a partition with sort keys from `from` up to `to`, the last first. */
  async *queryBackward(pk: string, from: string, to: string): AsyncIterable<Item> {
    const pages = this.#pages({
      KeyConditionExpression: 'pk = :pk AND sk BETWEEN :from AND :to',
      ExpressionAttributeValues: toAttributes({ ':pk': pk, ':from': from, ':to': to }),
      ConsistentRead: true,
      ScanIndexForward: false,
    });
    for await (const page of pages) yield* page;
  }

  /** Whichever of these items are there, in any order; unless `consistent`, as they were a moment ago, at half the price. */
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
   * The items that the index names under this key, read anew: it lags behind by a moment and holds keys only. `beginning`: what the
   * partition keys of those begin with that belong there; others are put there by who may write them, and are not read.
   */
  async *indexed(clusterKey: string, beginning = ''): AsyncIterable<Item> {
    const pages = this.#pages(
      {
        IndexName: CLUSTER_INDEX,
        KeyConditionExpression: 'clusterKey = :clusterKey',
        ExpressionAttributeValues: toAttributes({ ':clusterKey': clusterKey }),
      },
      BATCH_GET_KEYS,
    );
    for await (const page of pages) yield* this.batchGet(keysOf(page, beginning));
  }

  /** The items that the index names under this key from `from` on, read anew, the last first. `beginning`: see `indexed`. */
  async *indexedBackward(clusterKey: string, from: string, beginning = ''): AsyncIterable<Item> {
    const pages = this.#pages(
      {
        IndexName: CLUSTER_INDEX,
        KeyConditionExpression: 'clusterKey = :clusterKey AND clusterSort >= :from',
        ExpressionAttributeValues: toAttributes({ ':clusterKey': clusterKey, ':from': from }),
        ScanIndexForward: false,
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

  /** Puts an item, whole; `false` when there is one already. */
  async add(item: Item): Promise<boolean> {
    const command = new PutItemCommand({
      TableName: this.#name,
      Item: toAttributes(item),
      ConditionExpression: 'attribute_not_exists(pk)',
    });
    return (await this.#write(() => this.#client.send(command))) !== undefined;
  }

  /** The item after the update, which makes it when there is none; `undefined` when it is not as expected. */
  async update(update: Update): Promise<Item | undefined> {
    const command = new UpdateItemCommand({ ...this.#updateInput(update), ReturnValues: 'ALL_NEW' });
    const answer = await this.#write(() => this.#client.send(command));
    return answer && fromAttributes(answer.Attributes ?? {});
  }

  /** The item that was there. */
  async delete(key: Key): Promise<Item | undefined> {
    const command = new DeleteItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ReturnValues: 'ALL_OLD',
    });
    const answer = await this.#write(() => this.#client.send(command));
    return answer?.Attributes && fromAttributes(answer.Attributes);
  }

  /** Deletes any number of items, those that are there. Where it rejects, some of them may be gone. */
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
   * All of these writes or none: at most `TRANSACTION_ACTIONS`, each of another item. `false`: an item is not as
   * expected, or somebody else is writing one of them.
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

  /** What the table's tag of this name says; `undefined`: it has none. */
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

  async *#pages(
    query: Omit<QueryCommandInput, 'TableName'>,
    pageSize?: number,
  ): AsyncIterable<readonly Item[]> {
    const settings = { client: this.#client, ...(pageSize === undefined ? {} : { pageSize }) };
    const pages = paginateQuery(settings, { ...query, TableName: this.#name });
    while (true) {
      const { done, value } = await this.#orStoreError(pages.next());
      if (done) return;
      yield (value.Items ?? []).map(fromAttributes);
    }
  }

  /** Waits before all but the first attempt at a batch; rejects when there were enough of them. */
  async #awaitTurn(attempt: number, left: number): Promise<void> {
    if (attempt > ATTEMPTS) {
      throw new StoreError(
        `DynamoDB table ${this.#name} left out ${left} items of a batch in ${ATTEMPTS} attempts: it is throttled; raise its limits if that lasts.`,
      );
    }
    if (attempt > 1) await pause(backoffMs(attempt - 1, BACKOFF));
  }

  /** The answer to a write, tried again while a transaction holds the item; `undefined`: it is not as expected. */
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

/**
 * An item as DynamoDB and its stream speak of it, as plain values. A number that JavaScript does not hold exactly, which nobody
 * of us writes, stays a text: who reads its field refuses it, and what stands beside it is read.
 */
export const fromAttributes = (attributes: Record<string, AttributeValue>): Item =>
  unmarshall(attributes, {
    wrapNumbers: (text) => (Math.abs(Number(text)) > Number.MAX_SAFE_INTEGER ? text : Number(text)),
  });

/** A field that is `undefined` is left out. An object may have any keys, `constructor` among them: none is taken for a class. */
export const toAttributes = (item: object): Record<string, AttributeValue> =>
  marshall(item, { removeUndefinedValues: true, convertClassInstanceToMap: true });

/**
 * Each attribute is `#name`; its new value `:name`, what is added `:add_name`, what it must be `:expected_name`, or between
 * `:from_name` and `:to_name`, or below `:below_name`.
 */
function updateExpression({ set = {}, add = {}, expected = {}, within = {}, below = {} }: Update) {
  const changes: Record<'SET' | 'REMOVE' | 'ADD', string[]> = { SET: [], REMOVE: [], ADD: [] };
  const conditions: string[] = [];
  const names: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  const term = (name: string, value: string, given: unknown) => {
    names[`#${name}`] = name;
    values[value] = given;
  };
  for (const [name, value] of Object.entries(set)) {
    term(name, `:${name}`, value);
    if (value === undefined) changes.REMOVE.push(`#${name}`);
    else changes.SET.push(`#${name} = :${name}`);
  }
  for (const [name, value] of Object.entries(add)) {
    term(name, `:add_${name}`, value);
    changes.ADD.push(`#${name} :add_${name}`);
  }
  for (const [name, value] of Object.entries(expected)) {
    term(name, `:expected_${name}`, value);
    conditions.push(value === undefined ? `attribute_not_exists(#${name})` : `#${name} = :expected_${name}`);
  }
  for (const [name, [from, to]] of Object.entries(within)) {
    term(name, `:from_${name}`, from);
    term(name, `:to_${name}`, to);
    conditions.push(`#${name} >= :from_${name}`, `#${name} <= :to_${name}`);
  }
  for (const [name, value] of Object.entries(below)) {
    term(name, `:below_${name}`, value);
    conditions.push(`(attribute_not_exists(#${name}) OR #${name} < :below_${name})`);
  }
  const clauses = Object.entries(changes).filter(([, parts]) => parts.length > 0);
  return {
    UpdateExpression: clauses.map(([word, parts]) => `${word} ${parts.join(', ')}`).join(' '),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: toAttributes(values),
    ...(conditions.length > 0 ? { ConditionExpression: conditions.join(' AND ') } : {}),
  };
}

/** The keys that the index names, of those items whose partition keys begin so. */
const keysOf = (page: readonly Item[], beginning: string): readonly Key[] =>
  page.map(({ pk, sk }) => ({ pk: `${pk}`, sk: `${sk}` })).filter(({ pk }) => pk.startsWith(beginning));

const distinct = (keys: readonly Key[]): readonly Key[] => [
  ...new Map(keys.map((key) => [`${key.pk}\n${key.sk}`, key])).values(),
];

/** A list in pieces of at most `size`, in order; no pieces for an empty list. */
function chunksOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}

/** Whether a transaction failed because others write the same items: one is not as expected, or will not be. */
function lostRace(error: unknown): boolean {
  if (error instanceof TransactionInProgressException) return true;
  if (!(error instanceof TransactionCanceledException)) return false;
  return (error.CancellationReasons ?? []).some(
    ({ Code }) => Code === 'ConditionalCheckFailed' || Code === 'TransactionConflict',
  );
}
