import {
  BatchGetItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { itemBytes } from '#test/unit/store/item-bytes.ts';
import { FakeDynamoDb, fakeClient, type Item } from '#test/world/fake-dynamodb.ts';

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;

/** What a table was asked for, in request units. */
export interface Units {
  readonly reads: number;
  readonly writes: number;
}

/** The fake DynamoDB, and the request units that each answer would have been billed as. */
export class CountedTable {
  readonly client: DynamoDBClient;
  readonly #fake: FakeDynamoDb;
  #units: Units = { reads: 0, writes: 0 };

  constructor(now: () => number) {
    this.#fake = new FakeDynamoDb({ now });
    this.client = fakeClient(async (command) => {
      const answer = this.#fake.perform(command);
      const { reads, writes } = unitsOf(command, answer);
      this.#units = { reads: this.#units.reads + reads, writes: this.#units.writes + writes };
      return answer;
    });
  }

  /** All so far. */
  get units(): Units {
    return this.#units;
  }
}

/** As the Developer Guide has it ("Read and write operations"): what is not there is billed as the smallest item. */
function unitsOf(command: unknown, answer: object): Units {
  const {
    Item,
    Items = [],
    Responses = {},
    Attributes,
  } = answer as {
    Item?: Item;
    Items?: readonly Item[];
    Responses?: Record<string, readonly Item[]>;
    Attributes?: Item;
  };
  if (command instanceof GetItemCommand) {
    return reading([Item], command.input.ConsistentRead);
  }
  if (command instanceof QueryCommand) {
    const bytes = Items.reduce((sum, item) => sum + itemBytes(item), 0);
    return { reads: units(bytes, READ_UNIT_BYTES) * share(command.input.ConsistentRead), writes: 0 };
  }
  if (command instanceof BatchGetItemCommand) {
    const [{ Keys = [], ConsistentRead } = {}] = Object.values(command.input.RequestItems ?? {});
    const found = Object.values(Responses).flat();
    return reading(
      Array.from(Keys, (_, index) => found[index]),
      ConsistentRead,
    );
  }
  if (command instanceof UpdateItemCommand || command instanceof PutItemCommand) {
    const item = Attributes ?? (command instanceof PutItemCommand ? command.input.Item : undefined);
    return { reads: 0, writes: units(item ? itemBytes(item) : 0, WRITE_UNIT_BYTES) };
  }
  if (command instanceof DescribeTableCommand || command instanceof ListTagsOfResourceCommand) {
    return { reads: 0, writes: 0 };
  }
  throw new Error(`Nobody says what ${command?.constructor.name} costs.`);
}

const reading = (items: readonly (Item | undefined)[], consistent = false): Units => ({
  reads: items.reduce(
    (sum, item) => sum + units(item ? itemBytes(item) : 0, READ_UNIT_BYTES) * share(consistent),
    0,
  ),
  writes: 0,
});

const units = (bytes: number, size: number): number => Math.max(1, Math.ceil(bytes / size));

/** What may lag behind a moment costs half. */
const share = (consistent = false): number => (consistent ? 1 : 0.5);
