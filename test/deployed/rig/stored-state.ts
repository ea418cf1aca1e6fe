import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { TTL_IDENTITY } from '#functions/expiry/expired-record.ts';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EndedPod, EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable, toAttributes } from '#shared/state/dynamodb/dynamodb-table.ts';
import { nodeItemKey, scheduledKey } from '#shared/state/dynamodb/items.ts';
import { TTL_ATTRIBUTE } from '#shared/state/dynamodb/table-definition.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

/** What the deployed table holds. */
export class StoredState {
  readonly tableName: string;
  readonly #table: DynamoDbTable;
  readonly #store: DynamoDbStore;

  constructor(client: DynamoDBClient, tableName: string) {
    this.tableName = tableName;
    this.#table = new DynamoDbTable({ client, tableName });
    this.#store = new DynamoDbStore(this.#table);
  }

  partition(cluster: string, node: string): Promise<Partition> {
    return this.#store.load(refOf(cluster, node), Date.now());
  }

  /** Waits until a pod's eviction is scheduled. */
  scheduled(cluster: string, pod: PodLife): Promise<EvictionRecord> {
    return until(`the eviction of ${pod.name} is scheduled`, () => this.record(cluster, pod));
  }

  /** A pod's scheduled record. */
  async record(cluster: string, pod: PodLife): Promise<EvictionRecord | undefined> {
    return (await this.partition(cluster, pod.node)).scheduled.get(podUid(pod.uid));
  }

  /** How a pod's record ended, if it did lately. */
  async ended(cluster: string, pod: PodLife): Promise<EndedPod | undefined> {
    return (await this.partition(cluster, pod.node)).ended.get(podUid(pod.uid));
  }

  /** Who holds a cluster's lease, and under which epoch. */
  async lease(cluster: string): Promise<Record<string, unknown>> {
    return (await this.#table.get({ pk: `LEASE#${cluster}`, sk: 'LEASE' })) ?? {};
  }

  /** Makes a node's item one that nobody can read, as a hand or a newer release might. */
  async spoilNode(cluster: string, node: string): Promise<void> {
    await this.#table.update({ key: nodeItemKey(refOf(cluster, node)), set: { revision: 'spoilt' } });
  }

  /** Takes a node's item away. */
  async forgetNode(cluster: string, node: string): Promise<void> {
    await this.#table.delete(nodeItemKey(refOf(cluster, node)));
  }

  /** Has the time to live of a record be over. */
  async outlive(cluster: string, pod: PodLife): Promise<void> {
    const key = scheduledKey(refOf(cluster, pod.node), podUid(pod.uid));
    await this.#table.update({ key, set: { [TTL_ATTRIBUTE]: Math.floor(Date.now() / 1_000) - 1 } });
  }

  /**
   * Removes a record as its time to live would, and returns what the table's stream would say of it. The stand-in neither
   * removes it by itself in time nor marks what it removes.
   */
  async expire(cluster: string, pod: PodLife): Promise<object> {
    const key = scheduledKey(refOf(cluster, pod.node), podUid(pod.uid));
    const item = await this.#table.delete(key);
    const images = { Keys: toAttributes(key), OldImage: toAttributes(item ?? {}) };
    const dynamodb = { ...images, SequenceNumber: '1', StreamViewType: 'OLD_IMAGE' };
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
}

export const refOf = (cluster: string, node: string): NodeRef => ({
  cluster: clusterName(cluster),
  node: nodeName(node),
});
