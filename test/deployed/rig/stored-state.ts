import {
  type AttributeValue,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import { TTL_IDENTITY } from '#functions/expiry/expired-record.ts';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { fromItem, toItem } from '#shared/store/attribute-values.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { evictionItemKey, nodeItemKey } from '#shared/store/items.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

type Item = Record<string, AttributeValue>;

/** How long the way from the API server to the table may take. */
const STORED_WITHIN_MS = 20_000;

/** What the deployed table holds. */
export class StoredState {
  readonly tableName: string;
  readonly #client: DynamoDBClient;
  readonly #store: DynamoDbStore;

  constructor(client: DynamoDBClient, tableName: string) {
    this.tableName = tableName;
    this.#client = client;
    this.#store = new DynamoDbStore({ client, tableName });
  }

  partition(cluster: string, node: string): Promise<Partition> {
    return this.#store.load(refOf(cluster, node), { kind: 'all' });
  }

  /** Waits until a pod's eviction is scheduled. */
  scheduled(cluster: string, pod: PodLife): Promise<EvictionRecord> {
    return until(`the eviction of ${pod.name} is scheduled`, STORED_WITHIN_MS, async () => {
      const record = await this.record(cluster, pod);
      return record?.state === 'scheduled' && record;
    });
  }

  async record(cluster: string, pod: PodLife): Promise<EvictionRecord | undefined> {
    const { evictions } = await this.#store.load(refOf(cluster, pod.node), {
      kind: 'pods',
      uids: [podUid(pod.uid)],
    });
    return evictions.get(podUid(pod.uid));
  }

  /** Who holds a cluster's lease, and under which epoch. */
  async lease(cluster: string): Promise<Record<string, unknown>> {
    return fromItem((await this.#item(toItem({ pk: `LEASE#${cluster}`, sk: 'LEASE' }))) ?? {});
  }

  /** Makes a node's item one that nobody can read, as a hand or a newer release might. */
  async spoilNode(cluster: string, node: string): Promise<void> {
    const item = { ...nodeItemKey(refOf(cluster, node)), ...toItem({ revision: 'spoilt' }) };
    await this.#client.send(new PutItemCommand({ TableName: this.tableName, Item: item }));
  }

  /** Takes a node's item away. */
  async forgetNode(cluster: string, node: string): Promise<void> {
    await this.#delete(nodeItemKey(refOf(cluster, node)));
  }

  /**
   * Removes a record as its time to live would, and returns what the table's stream would say of it. The stand-in neither
   * removes it by itself in time nor marks what it removes.
   */
  async expire(cluster: string, pod: PodLife): Promise<object> {
    const key = evictionItemKey(refOf(cluster, pod.node), podUid(pod.uid));
    const OldImage = await this.#item(key);
    await this.#delete(key);
    const dynamodb = { Keys: key, OldImage, SequenceNumber: '1', StreamViewType: 'OLD_IMAGE' };
    return {
      Records: [
        {
          eventID: pod.uid,
          eventName: 'REMOVE',
          eventSource: 'aws:dynamodb',
          userIdentity: TTL_IDENTITY,
          dynamodb,
        },
      ],
    };
  }

  async #item(key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName: this.tableName, Key: key, ConsistentRead: true });
    return (await this.#client.send(command)).Item;
  }

  async #delete(key: Item): Promise<void> {
    await this.#client.send(new DeleteItemCommand({ TableName: this.tableName, Key: key }));
  }
}

export const refOf = (cluster: string, node: string): NodeRef => ({
  cluster: clusterName(cluster),
  node: nodeName(node),
});
