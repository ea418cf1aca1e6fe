import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { dynamoDbStoreError, orStoreError } from '#shared/store/dynamodb-error.ts';
import { TableReader } from '#shared/store/table-reader.ts';
import {
  CLUSTERS_KEY,
  indexedName,
  parseRegistration,
  registrationItem,
  registrationKey,
} from './registration-item.ts';
import type { Access, ClusterRegistry, RegisteredCluster } from './registry.ts';

/** The registry as `REGISTRATION` items of the store's table, listed by its index. */
export class DynamoDbClusterRegistry implements ClusterRegistry {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #reader: TableReader;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#tableName = tableName;
    this.#reader = new TableReader(client, tableName);
  }

  async list(): Promise<readonly RegisteredCluster[]> {
    const clusters: RegisteredCluster[] = [];
    for await (const page of this.#reader.indexPages(CLUSTERS_KEY)) {
      // The index holds keys only, and lags behind: what it names is read anew.
      const keys = page.map((item) => registrationKey(indexedName(item)));
      for await (const item of this.#reader.batchGet(keys)) clusters.push(parseRegistration(item));
    }
    return clusters.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async get(name: ClusterName): Promise<RegisteredCluster | undefined> {
    const item = await this.#reader.get(registrationKey(name));
    return item && parseRegistration(item);
  }

  async add(cluster: RegisteredCluster<Access>): Promise<'added' | 'exists'> {
    const command = new PutItemCommand({
      TableName: this.#tableName,
      Item: registrationItem(cluster),
      ConditionExpression: 'attribute_not_exists(pk)',
    });
    try {
      await this.#client.send(command);
      return 'added';
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return 'exists';
      throw dynamoDbStoreError(error, this.#tableName);
    }
  }

  async remove(name: ClusterName): Promise<'removed' | 'unknown'> {
    const command = new DeleteItemCommand({
      TableName: this.#tableName,
      Key: registrationKey(name),
      ReturnValues: 'ALL_OLD',
    });
    const { Attributes } = await orStoreError(this.#tableName, this.#client.send(command));
    return Attributes ? 'removed' : 'unknown';
  }
}
