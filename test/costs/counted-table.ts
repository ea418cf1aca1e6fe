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
import { itemBytes } from '#test/unit/store/item-bytes.ts';
import { FakeDynamoDb, fakeClient, type Item } from '#test/world/fake-dynamodb.ts';

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;
/** A write of a transaction is prepared, and then done. */
const TRANSACTED = 2;

/** What a table was asked for, in request units. */
export interface Units {
  readonly reads: number;
  readonly writes: number;
}

/** What of a request is billed, and to which partition key of the table, or of its index, that is a load. */
interface Part extends Units {
  readonly of: 'table' | 'index';
  readonly key: string;
}

/** Where what is asked for goes: a partition key of the table, or of its index. */
export interface Loads {
  readonly table: ReadonlyMap<string, Units>;
  readonly index: ReadonlyMap<string, Units>;
}

/** The fake DynamoDB, and the request units that each answer would have been billed as. */
export class CountedTable {
  readonly client: DynamoDBClient;
  readonly #fake: FakeDynamoDb;
  readonly #loads = { table: new Map<string, Units>(), index: new Map<string, Units>() };
  #units: Units = { reads: 0, writes: 0 };
  #calls = 0;

  constructor(now: () => number) {
    this.#fake = new FakeDynamoDb({ now });
    this.client = fakeClient(async (command) => {
      const written = keysWritten(command);
      const before = written.map((key) => this.#item(key));
      const answer = this.#fake.perform(command);
      this.#calls += 1;
      const each = command instanceof TransactWriteItemsCommand ? TRANSACTED : 1;
      const parts = [
        ...readsOf(command, answer),
        ...written.flatMap((key, at) => writesOf(key, before[at], this.#item(key), each)),
      ];
      for (const part of parts) this.#count(part);
      return answer;
    });
  }

  /** All so far. */
  get units(): Units {
    return this.#units;
  }

  /** Requests so far, whatever they took. */
  get calls(): number {
    return this.#calls;
  }

  /** All so far, by partition key. */
  get loads(): Loads {
    return { table: new Map(this.#loads.table), index: new Map(this.#loads.index) };
  }

  /** All that is stored. */
  items(): Iterable<Item> {
    return this.#fake.items();
  }

  #item(Key: Item): Item | undefined {
    const got: { readonly Item?: Item } = this.#fake.calmly(new GetItemCommand({ TableName: '', Key }));
    return got.Item;
  }

  #count({ of, key, reads, writes }: Part): void {
    this.#units = plus(this.#units, { reads, writes });
    this.#loads[of].set(key, plus(this.#loads[of].get(key), { reads, writes }));
  }
}

const plus = (a: Units = { reads: 0, writes: 0 }, b: Units): Units => ({
  reads: a.reads + b.reads,
  writes: a.writes + b.writes,
});

/** As the Developer Guide has it ("Read and write operations"): what is not there is billed as the smallest item. */
function readsOf(command: unknown, answer: object): readonly Part[] {
  const {
    Item,
    Items = [],
    Responses = {},
  } = answer as {
    Item?: Item;
    Items?: readonly Item[];
    Responses?: Record<string, readonly Item[]>;
  };
  const got = (key: Item, item: Item | undefined, consistent: boolean | undefined): Part => ({
    of: 'table',
    key: partitionOf(key),
    reads: units(item ? itemBytes(item) : 0, READ_UNIT_BYTES) * share(consistent),
    writes: 0,
  });
  if (command instanceof GetItemCommand)
    return [got(command.input.Key ?? {}, Item, command.input.ConsistentRead)];
  if (command instanceof QueryCommand) {
    const { IndexName, ExpressionAttributeValues: asked = {}, ConsistentRead } = command.input;
    const bytes = Items.reduce((sum, item) => sum + itemBytes(item), 0);
    const key = (IndexName === undefined ? asked[':pk'] : asked[':clusterKey'])?.S ?? '';
    const reads = units(bytes, READ_UNIT_BYTES) * share(ConsistentRead);
    return [{ of: IndexName === undefined ? 'table' : 'index', key, reads, writes: 0 }];
  }
  if (command instanceof BatchGetItemCommand) {
    const [{ Keys = [], ConsistentRead } = {}] = Object.values(command.input.RequestItems ?? {});
    const found = new Map(
      Object.values(Responses)
        .flat()
        .map((item) => [idOf(item), item]),
    );
    return Keys.map((key) => got(key, found.get(idOf(key)), ConsistentRead));
  }
  return [];
}

/** What a write takes of the table and, where it changes what the index holds of the item, of that. */
function writesOf(
  key: Item,
  before: Item | undefined,
  after: Item | undefined,
  each: number,
): readonly Part[] {
  const bytes = Math.max(...[before, after].map((item) => (item ? itemBytes(item) : 0)));
  const parts: Part[] = [
    { of: 'table', key: partitionOf(key), reads: 0, writes: units(bytes, WRITE_UNIT_BYTES) * each },
  ];
  const [was, is] = [indexed(before), indexed(after)];
  if (was?.sort !== is?.sort || was?.key !== is?.key) {
    for (const entry of [was, is])
      if (entry) parts.push({ of: 'index', key: entry.key, reads: 0, writes: 1 });
  }
  return parts;
}

/** The keys of what a command writes, one for each item. Throws for what nobody has said the price of. */
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

const partitionOf = ({ pk }: Item): string => pk?.S ?? '';

const idOf = ({ pk, sk }: Item): string => `${pk?.S}\n${sk?.S}`;

const keyOf = ({ pk, sk }: Item): Item => ({ ...(pk && { pk }), ...(sk && { sk }) });

/** Under what the index holds an item. */
function indexed(item: Item | undefined): { readonly key: string; readonly sort: string } | undefined {
  const [key, sort] = [item?.['clusterKey']?.S, item?.['clusterSort']?.S];
  return key === undefined || sort === undefined ? undefined : { key, sort };
}

const units = (bytes: number, size: number): number => Math.max(1, Math.ceil(bytes / size));

/** What may lag behind a moment costs half. */
const share = (consistent = false): number => (consistent ? 1 : 0.5);
