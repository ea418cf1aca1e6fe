import {
  BatchWriteItemCommand,
  QueryCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { TestTable } from '#test/aws/dynamodb-table.ts';
import { someRecords } from '#test/contracts/partition-builders.ts';

/** So many items a batch of writes may have. */
const BATCH = 25;
let made = 0;

/** Items like those of the store, written and read by the SDK's client alone. */
export class BareItems {
  readonly #table: TestTable;

  constructor(table: TestTable) {
    this.#table = table;
  }

  /** Pods a second that are put in a transaction a node, read by one query, and deleted in batches. */
  async rates(nodes: number, podsPerNode: number) {
    const work = Array.from({ length: nodes }, () => ({
      pk: `bare-${made++}`,
      records: someRecords(podsPerNode),
    }));
    const rate = async (perform: (item: (typeof work)[number]) => Promise<void>) => {
      const beganAt = performance.now();
      for (const item of work) await perform(item);
      return (nodes * podsPerNode * 1000) / (performance.now() - beganAt);
    };
    return {
      scheduled: await rate(({ pk, records }) => this.#put(pk, records)),
      read: await rate(({ pk }) => this.#read(pk)),
      ended: await rate(({ pk, records }) => this.#remove(pk, records)),
    };
  }

  async #put(pk: string, records: readonly EvictionRecord[]): Promise<void> {
    const { client, tableName: TableName } = this.#table;
    const TransactItems = records.map(
      (record): TransactWriteItem => ({
        Put: {
          TableName,
          Item: marshall({ pk, sk: record.uid, ...record }, { removeUndefinedValues: true }),
        },
      }),
    );
    await client.send(new TransactWriteItemsCommand({ TransactItems }));
  }

  async #read(pk: string): Promise<void> {
    const { client, tableName: TableName } = this.#table;
    await client.send(
      new QueryCommand({
        TableName,
        KeyConditionExpression: 'pk = :pk',
        ExpressionAttributeValues: marshall({ ':pk': pk }),
        ConsistentRead: true,
      }),
    );
  }

  async #remove(pk: string, records: readonly EvictionRecord[]): Promise<void> {
    const { client, tableName } = this.#table;
    for (let from = 0; from < records.length; from += BATCH) {
      const requests = records
        .slice(from, from + BATCH)
        .map(({ uid }) => ({ DeleteRequest: { Key: marshall({ pk, sk: uid }) } }));
      await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: requests } }));
    }
  }
}
