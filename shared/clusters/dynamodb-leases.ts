import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import * as z from 'zod';
import { type ClusterName, clusterName, type EpochMs } from '#shared/eviction/identity.ts';
import { fromItem, type Item, toItem } from '#shared/store/attribute-values.ts';
import { dynamoDbStoreError } from '#shared/store/dynamodb-error.ts';
import { parseStored } from '#shared/store/item-schemas.ts';
import { TableReader } from '#shared/store/table-reader.ts';
import type { Lease, LeaseReader, Leases } from './lease.ts';

const epochSchema = z.int().positive();

/** A lease that somebody holds; one that was released has no holder. */
const heldSchema = z.object({ cluster: z.string(), holder: z.string(), expiresAt: z.int() });
type Held = z.output<typeof heldSchema>;

const leaseKey = (cluster: ClusterName): Item => toItem({ pk: `CLUSTER#${cluster}`, sk: 'LEASE' });

/** Leases as `LEASE` items of the store's table. Every method rejects with `StoreError`. */
export class DynamoDbLeases implements Leases, LeaseReader {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #reader: TableReader;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#tableName = tableName;
    this.#reader = new TableReader(client, tableName);
  }

  async acquire(
    cluster: ClusterName,
    holder: string,
    now: EpochMs,
    ttlMs: number,
  ): Promise<Lease | undefined> {
    // A write that fails its condition costs five times a read, and most are tried while another one holds the lease.
    const found = await this.#reader.get(leaseKey(cluster));
    const held = found && asHeld(found);
    if (held && held.holder !== holder && held.expiresAt > now) return undefined;
    const expiresAt = now + ttlMs;
    const item = await this.#update(cluster, {
      // The item is never deleted, so the epoch it counts never goes back.
      UpdateExpression: 'SET holder = :holder, expiresAt = :expiresAt ADD epoch :one',
      ConditionExpression: 'attribute_not_exists(holder) OR holder = :holder OR expiresAt <= :now',
      ExpressionAttributeValues: toItem({
        ':holder': holder,
        ':expiresAt': expiresAt,
        ':one': 1,
        ':now': now,
      }),
    });
    if (!item) return undefined;
    const epoch = parseStored(
      epochSchema,
      fromItem(item)['epoch'],
      `epoch of the lease of cluster ${cluster}`,
    );
    return { cluster, holder, epoch, expiresAt };
  }

  async renew(lease: Lease, now: EpochMs, ttlMs: number): Promise<Lease | undefined> {
    const expiresAt = now + ttlMs;
    const { cluster, holder, epoch } = lease;
    const item = await this.#update(cluster, {
      UpdateExpression: 'SET expiresAt = :expiresAt',
      ConditionExpression: 'holder = :holder AND epoch = :epoch',
      ExpressionAttributeValues: toItem({ ':expiresAt': expiresAt, ':holder': holder, ':epoch': epoch }),
    });
    return item && { ...lease, expiresAt };
  }

  async release({ cluster, holder, epoch }: Lease): Promise<void> {
    await this.#update(cluster, {
      UpdateExpression: 'REMOVE holder',
      ConditionExpression: 'holder = :holder AND epoch = :epoch',
      ExpressionAttributeValues: toItem({ ':holder': holder, ':epoch': epoch }),
    });
  }

  async held(clusters: readonly ClusterName[], now: EpochMs): Promise<ReadonlySet<ClusterName>> {
    const held = new Set<ClusterName>();
    for await (const item of this.#reader.batchGet(clusters.map(leaseKey))) {
      const lease = asHeld(item);
      if (lease && lease.expiresAt > now) held.add(clusterName(lease.cluster));
    }
    return held;
  }

  /** The lease's item after the update; `undefined` when the condition did not hold. */
  async #update(
    cluster: ClusterName,
    update: Omit<UpdateItemCommandInput, 'TableName' | 'Key'>,
  ): Promise<Item | undefined> {
    const command = new UpdateItemCommand({
      ...update,
      TableName: this.#tableName,
      Key: leaseKey(cluster),
      ReturnValues: 'ALL_NEW',
    });
    try {
      return (await this.#client.send(command)).Attributes ?? {};
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw dynamoDbStoreError(error, this.#tableName);
    }
  }
}

function asHeld(item: Item): Held | undefined {
  const fields = fromItem(item);
  const cluster = String(fields['pk']).slice('CLUSTER#'.length);
  return heldSchema.safeParse({ ...fields, cluster }).data;
}
