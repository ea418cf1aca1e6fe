import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { itemBytes } from '#test/unit/state/dynamodb/item-bytes.ts';
import { FakeDynamoDb, fakeClient, type Item, NO_WHIMS } from '#test/world/fake-dynamodb.ts';

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;
/** A transactional write is prepared, and then performed. */
const TRANSACTED = 2;

/** The usage of a table, in request units. */
export interface Units {
  readonly reads: number;
  readonly writes: number;
}

/** The fake DynamoDB, with the request units that AWS would have billed for each response. */
export class CountedTable {
  readonly client: DynamoDBClient;
  readonly #fake: FakeDynamoDb;
  #units: Units = { reads: 0, writes: 0 };
  #calls = 0;

  constructor(now: () => number) {
    // A late read shows another size than the one that is usually billed.
    this.#fake = new FakeDynamoDb({ now }, { ...NO_WHIMS, readsLate: () => false });
    this.client = fakeClient(async (command) => {
      const written = keysWritten(command);
      const before = written.map((key) => this.#item(key));
      const answer = this.#fake.perform(command);
      this.#calls += 1;
      const unitsEach = command instanceof TransactWriteItemsCommand ? TRANSACTED : 1;
      const writes = written.map((key, at) => writesOf(before[at], this.#item(key), unitsEach));
      this.#units = {
        reads: this.#units.reads + sum(readsOf(command, answer)),
        writes: this.#units.writes + sum(writes),
      };
      return answer;
    });
  }

  /** The units so far. */
  get units(): Units {
    return this.#units;
  }

  /** The number of requests so far. */
  get calls(): number {
    return this.#calls;
  }

  #item(Key: Item): Item | undefined {
    const got: { readonly Item?: Item } = this.#fake.calmly(new GetItemCommand({ TableName: '', Key }));
    return got.Item;
  }
}

const sum = (units: readonly number[]): number => units.reduce((total, each) => total + each, 0);

/**
 * Returns the read units by the Developer Guide ("Read and write operations"): a missing item is billed as the smallest
 * item.
 */
function readsOf(command: unknown, answer: object): readonly number[] {
  const {
    Item,
    Items = [],
    Responses = {},
  } = answer as {
    Item?: Item;
    Items?: readonly Item[];
    Responses?: Record<string, readonly Item[]>;
  };
  const got = (bytes: number, consistent: boolean | undefined): number =>
    units(bytes, READ_UNIT_BYTES) * share(consistent);
  if (command instanceof GetItemCommand)
    return [got(Item ? itemBytes(Item) : 0, command.input.ConsistentRead)];
  if (command instanceof QueryCommand) return [got(sum(Items.map(itemBytes)), command.input.ConsistentRead)];
  if (command instanceof BatchGetItemCommand) {
    const [{ Keys = [], ConsistentRead } = {}] = Object.values(command.input.RequestItems ?? {});
    const found = new Map(
      Object.values(Responses)
        .flat()
        .map((item) => [idOf(item), item]),
    );
    return Keys.map((key) => got(itemBytes(found.get(idOf(key)) ?? {}), ConsistentRead));
  }
  return [];
}

/** Returns the write units of the table and, where the write changes the item's index entries, of the index. */
function writesOf(before: Item | undefined, after: Item | undefined, unitsEach: number): number {
  const bytes = Math.max(...[before, after].map((item) => (item ? itemBytes(item) : 0)));
  const [old, current] = [indexed(before), indexed(after)];
  const entries = old?.sort !== current?.sort || old?.key !== current?.key ? [old, current] : [];
  return units(bytes, WRITE_UNIT_BYTES) * unitsEach + entries.filter((entry) => entry !== undefined).length;
}

/** Returns the keys that a command writes, one for each item. Throws for commands without a known price. */
function keysWritten(command: unknown): readonly Item[] {
  if (command instanceof PutItemCommand) return [keyOf(command.input.Item ?? {})];
  if (command instanceof UpdateItemCommand || command instanceof DeleteItemCommand) {
    return [command.input.Key ?? {}];
  }
  if (command instanceof BatchWriteItemCommand) {
    const requests = Object.values(command.input.RequestItems ?? {}).flat();
    return requests.map(({ DeleteRequest }) => DeleteRequest?.Key ?? {});
  }
  if (command instanceof TransactWriteItemsCommand) {
    return (command.input.TransactItems ?? []).map(({ Put, Update, Delete }) =>
      keyOf(Put?.Item ?? Update?.Key ?? Delete?.Key ?? {}),
    );
  }
  const reads = [
    GetItemCommand,
    QueryCommand,
    BatchGetItemCommand,
    DescribeTableCommand,
    ListTagsOfResourceCommand,
  ];
  if (reads.some((read) => command instanceof read)) return [];
  throw new Error(`Nobody says what ${command?.constructor.name} costs.`);
}

const idOf = ({ pk, sk }: Item): string => `${pk?.S}\n${sk?.S}`;

const keyOf = ({ pk, sk }: Item): Item => ({ ...(pk && { pk }), ...(sk && { sk }) });

/** Returns the key of an item in the index. */
function indexed(item: Item | undefined): { readonly key: string; readonly sort: string } | undefined {
  const [key, sort] = [item?.['clusterKey']?.S, item?.['clusterSort']?.S];
  return key === undefined || sort === undefined ? undefined : { key, sort };
}

const units = (bytes: number, size: number): number => Math.max(1, Math.ceil(bytes / size));

/** Returns the price of a read: an eventually consistent read costs half. */
const share = (consistent = false): number => (consistent ? 1 : 0.5);
