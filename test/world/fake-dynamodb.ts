import {
  type AttributeValue,
  BatchGetItemCommand,
  type BatchGetItemCommandInput,
  BatchWriteItemCommand,
  type BatchWriteItemCommandInput,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DeleteItemCommandInput,
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  type PutItemCommandInput,
  QueryCommand,
  type QueryCommandInput,
  TransactionCanceledException,
  TransactionConflictException,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export type Item = Record<string, AttributeValue>;

/** One write, by itself or in a transaction. */
interface Action {
  readonly Put?: Omit<PutItemCommandInput, 'TableName'> | undefined;
  readonly Update?: Omit<UpdateItemCommandInput, 'TableName'> | undefined;
  readonly Delete?: Omit<DeleteItemCommandInput, 'TableName'> | undefined;
}

/** The nondeterminism that DynamoDB permits itself. */
export interface Whims {
  /** Returns the maximum number of items on the next page of a query. */
  pageItems(): number;
  /** Reports whether an action of a batch is left unprocessed. */
  leavesOut(): boolean;
  /** Reports whether another transaction holds the item to be written. */
  conflicts(): boolean;
  /** Returns the lag of the index behind a write. */
  indexLagMs(): number;
  /** Reports whether the first read of an item without `ConsistentRead` after a write shows the item before it. */
  readsLate(): boolean;
  /** Returns the delay between an item's time to live and its removal. */
  removalLagMs(): number;
}

/** Leaves nothing to chance. Reads are late unless they are consistent, so that a caller that must ask is noticed. */
export const NO_WHIMS: Whims = {
  pageItems: () => 1000,
  leavesOut: () => false,
  conflicts: () => false,
  indexLagMs: () => 0,
  readsLate: () => true,
  removalLagMs: () => 0,
};

const MAX_TRANSACTION_ACTIONS = 100;
const MAX_BATCH_GET_KEYS = 100;
const MAX_BATCH_WRITES = 25;
const MAX_ITEM_BYTES = 409_600;

/** A write to the index that is not visible yet. */
interface IndexWrite {
  readonly visibleAt: EpochMs;
  readonly id: string;
  readonly keys: Item | undefined;
}

/**
 * One DynamoDB table with one sparse, keys-only index, in memory. It supports the commands and expressions of the
 * project's adapters, and throws for any other, and for requests beyond DynamoDB's limits.
 */
export class FakeDynamoDb {
  readonly #clock: Clock;
  #whims: Whims;
  readonly #partitions = new Map<string, Map<string, Item>>();
  readonly #index = new Map<string, Item>();
  #indexWrites: IndexWrite[] = [];
  /** The items before their last writes, until a late read has shown them. */
  readonly #replaced = new Map<string, Item | undefined>();
  readonly #removeAt = new Map<string, EpochMs>();
  /** The table's tags, on pages of one. */
  tags: readonly { readonly Key: string; readonly Value: string }[] = [];
  /** Called for each item that is read by a query. */
  onQueried: (item: Item) => void = () => undefined;
  /** Called for each item that is put or updated. */
  onWritten: (item: Item) => void = () => undefined;

  constructor(clock: Clock, whims: Whims = NO_WHIMS) {
    this.#clock = clock;
    this.#whims = whims;
  }

  /** Yields all stored items. */
  *items(): Iterable<Item> {
    for (const partition of this.#partitions.values()) yield* partition.values();
  }

  /** Overwrites an item by hand, as if long ago; `undefined`: deletes it. */
  set(key: Item, item: Item | undefined): void {
    this.#set(key, item);
    this.#replaced.delete(idOf(key));
  }

  #set(key: Item, item: Item | undefined): void {
    const [pk, sk] = [textOf(key, 'pk'), textOf(key, 'sk')];
    const partition = this.#partitions.get(pk) ?? new Map<string, Item>();
    this.#replaced.set(idOf(key), partition.get(sk));
    this.#partitions.set(pk, partition);
    if (item) partition.set(sk, item);
    else partition.delete(sk);
    if (partition.size === 0) this.#partitions.delete(pk);
    this.#removeAt.delete(idOf(key));
    const visibleAt = this.#clock.now() + this.#whims.indexLagMs();
    const keys = item && indexKeys(item);
    if (keys || this.#index.has(idOf(key)) || this.#indexWrites.some(({ id }) => id === idOf(key))) {
      this.#indexWrites.push({ visibleAt, id: idOf(key), keys });
    }
    if (item) this.onWritten(item);
  }

  /** Removes and returns the items whose time to live and removal delay have passed. */
  sweep(): readonly Item[] {
    const now = this.#clock.now();
    const removed: Item[] = [];
    for (const item of this.items()) {
      const ttlMs = Number(item['ttl']?.N ?? Infinity) * 1000;
      if (ttlMs > now) continue;
      const id = idOf(item);
      const removeAt = this.#removeAt.get(id) ?? ttlMs + this.#whims.removalLagMs();
      this.#removeAt.set(id, removeAt);
      if (removeAt <= now) removed.push(item);
    }
    for (const item of removed) this.#set(item, undefined);
    return removed;
  }

  /** Answers a command, or throws as DynamoDB does. */
  perform(command: unknown): object {
    if (command instanceof GetItemCommand)
      return { Item: this.#read(command.input.Key, command.input.ConsistentRead) };
    if (command instanceof QueryCommand) return this.#query(command.input);
    if (command instanceof BatchGetItemCommand) return this.#batchGet(command.input);
    if (command instanceof BatchWriteItemCommand) return this.#batchWrite(command.input);
    if (command instanceof TransactWriteItemsCommand)
      return this.#transact(command.input.TransactItems ?? []);
    if (command instanceof PutItemCommand) return this.#write({ Put: command.input }).answer;
    if (command instanceof DeleteItemCommand) return this.#write({ Delete: command.input }).answer;
    if (command instanceof UpdateItemCommand) return this.#write({ Update: command.input }).answer;
    if (command instanceof DescribeTableCommand) return { Table: { TableArn: 'arn' } };
    if (command instanceof ListTagsOfResourceCommand)
      return this.#tagsFrom(Number(command.input.NextToken ?? 0));
    throw new Error(`the fake DynamoDB does not understand ${command?.constructor.name}`);
  }

  /** Performs a command without nondeterminism, late reads, and callbacks. */
  calmly(command: unknown): object {
    const { onQueried, onWritten } = this;
    const whims = this.#whims;
    this.onQueried = this.onWritten = () => undefined;
    this.#whims = { ...NO_WHIMS, readsLate: () => false };
    try {
      return this.perform(command);
    } finally {
      Object.assign(this, { onQueried, onWritten });
      this.#whims = whims;
    }
  }

  #tagsFrom(place: number): object {
    const more = place + 1 < this.tags.length ? { NextToken: String(place + 1) } : {};
    return { Tags: this.tags.slice(place, place + 1), ...more };
  }

  #get(key: Item | undefined): Item | undefined {
    if (!key) throw new Error('a key is missing');
    return this.#partitions.get(textOf(key, 'pk'))?.get(textOf(key, 'sk'));
  }

  #read(key: Item | undefined, consistent = false): Item | undefined {
    const id = key && idOf(key);
    if (consistent || id === undefined || !this.#replaced.has(id) || !this.#whims.readsLate())
      return this.#get(key);
    const replaced = this.#replaced.get(id);
    this.#replaced.delete(id);
    return replaced;
  }

  #query({
    IndexName,
    KeyConditionExpression,
    ExpressionAttributeValues,
    ...rest
  }: QueryCommandInput): object {
    const values = ExpressionAttributeValues ?? {};
    const found =
      IndexName === undefined ? this.#ofPartition(values, rest.ConsistentRead) : this.#ofIndex(values);
    const matches = keyCondition(KeyConditionExpression ?? '', values);
    const sortKey = IndexName === undefined ? 'sk' : 'clusterSort';
    const sorted = found
      .filter((item) => matches(textOf(item, sortKey)))
      .sort((a, b) => compare(textOf(a, sortKey), textOf(b, sortKey)) || compare(idOf(a), idOf(b)));
    const start = rest.ExclusiveStartKey;
    const backward = rest.ScanIndexForward === false;
    if (backward) sorted.reverse();
    const isLeft = (item: Item, last: Item) =>
      backward ? isAfter(last, item, sortKey) : isAfter(item, last, sortKey);
    const from = start ? sorted.findIndex((item) => isLeft(item, start)) : 0;
    const left = from < 0 ? [] : sorted.slice(from);
    const page = left.slice(0, Math.min(rest.Limit ?? Infinity, Math.max(1, this.#whims.pageItems())));
    for (const item of page) this.onQueried(item);
    const last = page.at(-1);
    return {
      Items: page,
      ...(last && page.length < left.length
        ? { LastEvaluatedKey: { ...keyOf(last), ...indexKeys(last) } }
        : {}),
    };
  }

  #ofPartition(values: Item, consistent: boolean | undefined): Item[] {
    const items = [...(this.#partitions.get(textOf(values, ':pk'))?.values() ?? [])];
    return items.map((item) => this.#read(item, consistent)).filter((item) => item !== undefined);
  }

  #ofIndex(values: Item): Item[] {
    const now = this.#clock.now();
    const waiting: IndexWrite[] = [];
    for (const write of this.#indexWrites) {
      if (write.visibleAt > now) waiting.push(write);
      else if (write.keys) this.#index.set(write.id, write.keys);
      else this.#index.delete(write.id);
    }
    this.#indexWrites = waiting;
    const clusterKey = textOf(values, ':clusterKey');
    return [...this.#index.values()].filter((item) => textOf(item, 'clusterKey') === clusterKey);
  }

  #batchGet({ RequestItems = {} }: BatchGetItemCommandInput): object {
    const [[name, { Keys = [], ConsistentRead }] = ['', {}]] = Object.entries(RequestItems);
    if (Keys.length > MAX_BATCH_GET_KEYS) throw new Error(`${Keys.length} keys in a BatchGetItem`);
    const [done, left] = this.#partly(Keys);
    const found = done.map((key) => this.#read(key, ConsistentRead)).filter((item) => item !== undefined);
    return {
      Responses: { [name]: found },
      UnprocessedKeys: left.length > 0 ? { [name]: { Keys: left } } : {},
    };
  }

  #batchWrite({ RequestItems = {} }: BatchWriteItemCommandInput): object {
    const [[name, requests] = ['', []]] = Object.entries(RequestItems);
    if (requests.length > MAX_BATCH_WRITES) throw new Error(`${requests.length} writes in a BatchWriteItem`);
    if (this.#whims.conflicts()) throw new TransactionConflictException({ message: '', $metadata: {} });
    const [done, left] = this.#partly(requests);
    for (const { DeleteRequest } of done) {
      if (!DeleteRequest?.Key) throw new Error('the fake DynamoDB only deletes in batches');
      this.#set(DeleteRequest.Key, undefined);
    }
    return { UnprocessedItems: left.length > 0 ? { [name]: left } : {} };
  }

  #partly<T>(all: readonly T[]): readonly [readonly T[], readonly T[]] {
    const left = all.filter(() => this.#whims.leavesOut());
    return [all.filter((each) => !left.includes(each)), left];
  }

  #transact(actions: readonly Action[]): object {
    if (actions.length > MAX_TRANSACTION_ACTIONS)
      throw new Error(`${actions.length} actions in a transaction`);
    const ids = actions.map((action) => idOf(itemOrKeyOf(action)));
    if (new Set(ids).size < ids.length) throw new Error('a transaction writes an item twice');
    const conflict = this.#whims.conflicts();
    const causes = actions.map((action, index) => {
      if (conflict && index === 0) return { Code: 'TransactionConflict' };
      return { Code: this.#isAsExpected(action) ? 'None' : 'ConditionalCheckFailed' };
    });
    if (causes.some(({ Code }) => Code !== 'None')) {
      throw new TransactionCanceledException({ message: '', $metadata: {}, CancellationReasons: causes });
    }
    for (const action of actions) this.#write(action);
    return {};
  }

  #isAsExpected(action: Action): boolean {
    const {
      ConditionExpression,
      ExpressionAttributeNames = {},
      ExpressionAttributeValues = {},
    } = action.Put ?? action.Update ?? action.Delete ?? {};
    if (ConditionExpression === undefined) return true;
    const stored = this.#get(itemOrKeyOf(action)) ?? {};
    const number = (name: string) => Number(stored[ExpressionAttributeNames[name] ?? name]?.N ?? Number.NaN);
    return ConditionExpression.split(' AND ').every((condition) => {
      const [, free = '', limit = ''] =
        /^\(attribute_not_exists\((\S+)\) OR \S+ < (\S+)\)$/.exec(condition) ?? [];
      if (free !== '') return !(number(free) >= Number(ExpressionAttributeValues[limit]?.N));
      const [, bounded = '', order, bound = ''] = /^(\S+) ([<>]=) (\S+)$/.exec(condition) ?? [];
      if (bounded !== '') {
        const difference = number(bounded) - Number(ExpressionAttributeValues[bound]?.N);
        return order === '>=' ? difference >= 0 : difference <= 0;
      }
      const [, not = '', attribute] = /^attribute_(not_)?exists\((\S+)\)$/.exec(condition) ?? [];
      if (attribute !== undefined)
        return (stored[ExpressionAttributeNames[attribute] ?? attribute] === undefined) === (not !== '');
      const [name = '', value = ''] = condition.split(' = ');
      const expected = ExpressionAttributeValues[value];
      if (!expected) throw new Error(`the fake DynamoDB does not understand the condition ${condition}`);
      return JSON.stringify(stored[ExpressionAttributeNames[name] ?? name]) === JSON.stringify(expected);
    });
  }

  #write(action: Action): { readonly answer: object } {
    if (!this.#isAsExpected(action)) {
      throw new ConditionalCheckFailedException({ message: 'The conditional request failed', $metadata: {} });
    }
    const key = keyOf(itemOrKeyOf(action));
    const before = this.#get(key);
    const item = after(action, before ?? key);
    if (item && JSON.stringify(item).length > MAX_ITEM_BYTES) throw new Error('an item is too large');
    this.#set(key, item);
    return { answer: { Attributes: action.Delete ? before : item } };
  }
}

/**
 * Returns a client whose commands are answered by `perform`. The rest of the client is not set up, because nothing uses
 * it.
 */
export function fakeClient(perform: (command: unknown) => Promise<object>): DynamoDBClient {
  return Object.assign(Object.create(DynamoDBClient.prototype), { send: perform });
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const textOf = (item: Item, name: string): string => item[name]?.S ?? '';

const keyOf = ({ pk, sk }: Item): Item => ({ ...(pk ? { pk } : {}), ...(sk ? { sk } : {}) });

const idOf = (item: Item): string => `${textOf(item, 'pk')}\n${textOf(item, 'sk')}`;

/** Returns the index keys of an item, if it has any. */
function indexKeys(item: Item): Item | undefined {
  const { pk, sk, clusterKey, clusterSort } = item;
  return pk && sk && clusterKey && clusterSort ? { pk, sk, clusterKey, clusterSort } : undefined;
}

function isAfter(item: Item, start: Item, sortKey: string): boolean {
  const order = compare(textOf(item, sortKey), textOf(start, sortKey));
  return order > 0 || (order === 0 && compare(idOf(item), idOf(start)) > 0);
}

function itemOrKeyOf({ Put, Update, Delete }: Action): Item {
  const found = Put?.Item ?? Update?.Key ?? Delete?.Key;
  if (!found) throw new Error('the fake DynamoDB understands Put, Update and Delete');
  return found;
}

/** Returns the sort key condition of a query. */
function keyCondition(expression: string, values: Item): (sortKey: string) => boolean {
  const [from, to] = [textOf(values, ':from'), textOf(values, ':to')];
  switch (expression) {
    case 'pk = :pk AND sk >= :from':
    case 'clusterKey = :clusterKey AND clusterSort >= :from':
      return (sortKey) => sortKey >= from;
    case 'pk = :pk AND sk BETWEEN :from AND :to':
      return (sortKey) => sortKey >= from && sortKey <= to;
    case 'clusterKey = :clusterKey':
      return () => true;
    default:
      throw new Error(`the fake DynamoDB does not understand the key condition ${expression}`);
  }
}

/** Returns the item after an action. */
function after({ Put, Update, Delete }: Action, before: Item): Item | undefined {
  if (Delete) return undefined;
  if (Put) return Put.Item;
  const names = Update?.ExpressionAttributeNames ?? {};
  const values = Update?.ExpressionAttributeValues ?? {};
  const item: Item = { ...before };
  for (const clause of (Update?.UpdateExpression ?? '').split(/ (?=(?:SET|REMOVE|ADD) )/)) {
    const [, word = '', parts = ''] = /^(SET|REMOVE|ADD) (.*)$/.exec(clause) ?? [];
    for (const part of parts.split(', ')) {
      const [name = '', value = ''] = part.split(word === 'SET' ? ' = ' : ' ');
      const attribute = names[name] ?? name;
      const given = values[value];
      if (word === 'REMOVE') delete item[attribute];
      else if (!given) throw new Error(`the fake DynamoDB does not understand the update ${clause}`);
      else if (word === 'SET') item[attribute] = given;
      else item[attribute] = { N: String(Number(item[attribute]?.N ?? 0) + Number(given.N)) };
    }
  }
  return item;
}
