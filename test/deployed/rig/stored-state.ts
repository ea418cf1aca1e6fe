import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { TTL_IDENTITY } from '#functions/expiry/handler.ts';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EndedPod, EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { nodeItemKey, scheduledKey } from '#shared/state/dynamodb/items.ts';
import { TTL_ATTRIBUTE } from '#shared/state/dynamodb/table-definition.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

/** The contents of the deployed table. */
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

  /** Returns a pod's scheduled record. */
  async record(cluster: string, pod: PodLife): Promise<EvictionRecord | undefined> {
    return (await this.partition(cluster, pod.node)).scheduled.get(podUid(pod.uid));
  }

  /** Returns the recent end of a pod's record, if there is one. */
  async ended(cluster: string, pod: PodLife): Promise<EndedPod | undefined> {
    return (await this.partition(cluster, pod.node)).ended.get(podUid(pod.uid));
  }

  /** Returns the item of a cluster's lease. */
  async lease(cluster: string): Promise<Record<string, unknown>> {
    return (await this.#table.get({ pk: `LEASE#${cluster}`, sk: 'LEASE' })) ?? {};
  }

  /** Makes a node's item unreadable, as a manual change or a newer release might. */
  async spoilNode(cluster: string, node: string): Promise<void> {
    await this.#table.update({ key: nodeItemKey(refOf(cluster, node)), set: { revision: 'spoilt' } });
  }

  /** Deletes a node's item. */
  async forgetNode(cluster: string, node: string): Promise<void> {
    await this.#table.delete(nodeItemKey(refOf(cluster, node)));
  }

  /** Sets the time to live of a record to the past. */
  async outlive(cluster: string, pod: PodLife): Promise<void> {
    const key = scheduledKey(refOf(cluster, pod.node), podUid(pod.uid));
    await this.#table.update({ key, set: { [TTL_ATTRIBUTE]: Math.floor(Date.now() / 1_000) - 1 } });
  }

  /**
   * Removes a record as its time to live would, and returns the event of the table's stream. The stand-in neither
   * removes records by itself in time nor marks removals.
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
