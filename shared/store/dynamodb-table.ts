import {
  type AttributeValue,
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  type CreateTableCommandInput,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  paginateQuery,
  type QueryCommandInput,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { dynamoDbStoreError } from './dynamodb-error.ts';
import { StoreError } from './store.ts';

/** The attribute that holds when DynamoDB may remove an item, in epoch seconds. */
export const TTL_ATTRIBUTE = 'ttl';

/** The sparse index: scheduled records by their moment, tainted nodes by their cluster. */
export const DUE_INDEX = 'due';

/** Keys in one BatchGetItem (DynamoDB's limit). */
const BATCH_GET_KEYS = 100;
/** Keys read from the index at a time, to fill one BatchGetItem. */
const INDEX_PAGE_ITEMS = BATCH_GET_KEYS;
/** How often what DynamoDB left out of a batch is asked for again; together some 2 s. The SDK leaves this to us. */
const BATCH_ATTEMPTS = 10;
const BATCH_BACKOFF: Backoff = { firstMs: 50, longestMs: 400 };

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
}

/**
 * The one table. Its items are plain objects here; attribute values, expressions, pages, and the limits of batches stay inside.
 * Reads are strongly consistent, but for what the index names. Every method rejects with `StoreError`.
 */
export class DynamoDbTable {
  readonly #client: DynamoDBClient;
  readonly #name: string;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#name = tableName;
  }

  /** One item, whole. */
  async get(key: Key): Promise<Item | undefined> {
    const command = new GetItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ConsistentRead: true,
    });
    const { Item } = await this.#orStoreError(this.#client.send(command));
    return Item && fromAttributes(Item);
  }

  /** Whichever of these items are there, in any order. */
  async *batchGet(keys: readonly Key[]): AsyncIterable<Item> {
    for (const chunk of chunksOf(distinct(keys), BATCH_GET_KEYS)) {
      let missing = chunk.map((key) => toAttributes(key));
      for (let attempt = 1; missing.length > 0; attempt++) {
        await this.#awaitTurn(attempt, missing.length);
        const command = new BatchGetItemCommand({
          RequestItems: { [this.#name]: { Keys: missing, ConsistentRead: true } },
        });
        const { Responses, UnprocessedKeys } = await this.#orStoreError(this.#client.send(command));
        yield* (Responses?.[this.#name] ?? []).map(fromAttributes);
        missing = UnprocessedKeys?.[this.#name]?.Keys ?? [];
      }
    }
  }

  /** The items that the index names under this key, read anew: it lags behind by a moment and holds keys only. */
  async *indexed(duePk: string): AsyncIterable<Item> {
    const pages = this.#pages(
      {
        IndexName: DUE_INDEX,
        KeyConditionExpression: 'duePk = :duePk',
        ExpressionAttributeValues: toAttributes({ ':duePk': duePk }),
      },
      INDEX_PAGE_ITEMS,
    );
    for await (const page of pages) {
      yield* this.batchGet(page.map(({ pk, sk }) => ({ pk: `${pk}`, sk: `${sk}` })));
    }
  }

  /** Puts an item, whole; `false` when there is one already. */
  async add(item: Item): Promise<boolean> {
    const command = new PutItemCommand({
      TableName: this.#name,
      Item: toAttributes(item),
      ConditionExpression: 'attribute_not_exists(pk)',
    });
    return (await this.#ifExpected(this.#client.send(command))) !== undefined;
  }

  /** The item after the update, which makes it when there is none; `undefined` when it is not as expected. */
  async update(update: Update): Promise<Item | undefined> {
    const command = new UpdateItemCommand({ ...this.#updateInput(update), ReturnValues: 'ALL_NEW' });
    const answer = await this.#ifExpected(this.#client.send(command));
    return answer && fromAttributes(answer.Attributes ?? {});
  }

  /** The item that was there. */
  async delete(key: Key): Promise<Item | undefined> {
    const command = new DeleteItemCommand({
      TableName: this.#name,
      Key: toAttributes(key),
      ReturnValues: 'ALL_OLD',
    });
    const { Attributes } = await this.#orStoreError(this.#client.send(command));
    return Attributes && fromAttributes(Attributes);
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
    if (attempt > BATCH_ATTEMPTS) {
      throw new StoreError(
        `DynamoDB table ${this.#name} left out ${left} items of a batch in ${BATCH_ATTEMPTS} attempts: it is throttled; raise its limits if that lasts.`,
      );
    }
    if (attempt > 1) await pause(backoffMs(attempt - 1, BATCH_BACKOFF));
  }

  /** The answer; `undefined` when the stored item is not as expected. */
  async #ifExpected<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw dynamoDbStoreError(error, this.#name);
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

/** The table to create. Everything but the keys is read from the table itself, hence the index holds keys only. */
export function tableDefinition(tableName: string): CreateTableCommandInput {
  const text = (name: string) => ({ AttributeName: name, AttributeType: 'S' }) as const;
  const keys = (hash: string, range: string) => [
    { AttributeName: hash, KeyType: 'HASH' as const },
    { AttributeName: range, KeyType: 'RANGE' as const },
  ];
  return {
    TableName: tableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: ['pk', 'sk', 'duePk', 'dueSk'].map(text),
    KeySchema: keys('pk', 'sk'),
    GlobalSecondaryIndexes: [
      {
        IndexName: DUE_INDEX,
        KeySchema: keys('duePk', 'dueSk'),
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
  };
}

/** An item as DynamoDB and its stream speak of it, as plain values. */
export const fromAttributes = (attributes: Record<string, AttributeValue>): Item => unmarshall(attributes);

/** A field that is `undefined` is left out. Throws for what no item of ours holds: functions, symbols, class instances. */
export const toAttributes = (item: object): Record<string, AttributeValue> =>
  marshall(item, { removeUndefinedValues: true });

/** Each attribute is `#name`; its new value `:name`, what is added to it `:add_name`, what it must be `:expected_name`. */
function updateExpression({ set = {}, add = {}, expected = {} }: Update) {
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
  const clauses = Object.entries(changes).filter(([, parts]) => parts.length > 0);
  return {
    UpdateExpression: clauses.map(([word, parts]) => `${word} ${parts.join(', ')}`).join(' '),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: toAttributes(values),
    ...(conditions.length > 0 ? { ConditionExpression: conditions.join(' AND ') } : {}),
  };
}

const distinct = (keys: readonly Key[]): readonly Key[] => [
  ...new Map(keys.map((key) => [`${key.pk}\n${key.sk}`, key])).values(),
];

/** A list in pieces of at most `size`, in order; no pieces for an empty list. */
function chunksOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}
