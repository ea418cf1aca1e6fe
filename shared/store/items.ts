import { createHash } from 'node:crypto';
import * as z from 'zod';
import {
  type ClusterName,
  type EpochMs,
  type NodeRef,
  nodeKey,
  type PodUid,
  parseNodeKey,
} from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { fromAttribute, fromItem, type Item, toItem } from './attribute-values.ts';
import { evictionSchema, nodeStateSchema, parseStored, revisionSchema } from './item-schemas.ts';
import { scheduledTtl, tombstoneTtl } from './retention.ts';
import type { Upcoming } from './store.ts';

/** Sort keys of eviction records start with this. */
export const EVICTION_PREFIX = 'EVICTION#';

/** Scheduled records are spread over this many partitions of the index, so that none is written to by all. */
export const DUE_SHARDS = 16;

/** Digits of the last moment a JavaScript date can hold, 8.64e15 ms: padded to it, moments sort as text. */
const MOMENT_DIGITS = 16;

export const nodeItemKey = (ref: NodeRef): Item => toItem({ pk: nodeKey(ref), sk: 'NODE' });

export const evictionItemKey = (ref: NodeRef, uid: PodUid): Item =>
  toItem({ pk: nodeKey(ref), sk: `${EVICTION_PREFIX}${uid}` });

/** The index's partition of one cluster's tainted nodes. */
export const taintedKey = (cluster: ClusterName): string => `TAINTED#${cluster}`;

/** One of the index's partitions of scheduled records; `shard` is 0 to 15. */
export const dueKey = (shard: number): string => `DUE#${shard}`;

/** The attributes of a NODE item that its content decides; `undefined` = removed. */
export function nodeAttributes(ref: NodeRef, node: NodeState): Record<string, unknown> {
  const tainted = node.taints.length > 0;
  return {
    taints: node.taints,
    version: node.version,
    observedAt: node.observedAt,
    podsVersion: node.podsVersion,
    deletedAt: node.deletedAt,
    duePk: tainted ? taintedKey(ref.cluster) : undefined,
    dueSk: tainted ? ref.node : undefined,
  };
}

/** The attributes of a tombstone that its record does not hold; `undefined` = removed. */
export function tombstoneAttributes(now: EpochMs): Record<string, unknown> {
  return { ttl: tombstoneTtl(now), duePk: undefined, dueSk: undefined };
}

/** A record as an item, whole. */
export function evictionItem(ref: NodeRef, record: EvictionRecord, now: EpochMs): Item {
  const derived =
    record.state === 'scheduled' ? scheduledAttributes(ref, record.fireAt, now) : tombstoneAttributes(now);
  return { ...evictionItemKey(ref, record.uid), ...toItem({ ...record, ...derived }) };
}

function scheduledAttributes(ref: NodeRef, fireAt: EpochMs, now: EpochMs): Record<string, unknown> {
  const key = nodeKey(ref);
  return {
    ttl: scheduledTtl(fireAt, now),
    duePk: dueKey(shardOf(key)),
    // With the node behind the moment, records that fall due together stand together.
    dueSk: `${String(fireAt).padStart(MOMENT_DIGITS, '0')}#${key}`,
  };
}

/** All of a node's records are in one shard. */
function shardOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt8() % DUE_SHARDS;
}

/** Reads a NODE item: the revision, and what is known of the node, if anything. Throws `StoreError`. */
export function parseNodeItem(
  ref: NodeRef,
  item: Item,
): { readonly revision: number; readonly node: NodeState | undefined } {
  const fields = fromItem(item);
  const what = `item NODE of ${nodeKey(ref)}`;
  return {
    revision: parseStored(revisionSchema, fields['revision'], what),
    node: fields['taints'] === undefined ? undefined : parseStored(nodeStateSchema, fields, what),
  };
}

/** Reads an EVICTION item, from the table or from its stream. Throws `StoreError`. */
export function parseEvictionItem(item: Item): EvictionRecord {
  const fields = fromItem(item);
  return parseStored(evictionSchema, fields, `item ${fields['sk']} of ${fields['pk']}`);
}

const dueSortKey = z.string().regex(/^\d{16}#.+#.+$/);

/** Reads what the index says of a scheduled record. Throws `StoreError`. */
export function parseDueItem(item: Item): Upcoming & { readonly sortKey: string } {
  const sortKey = parseStored(dueSortKey, item['dueSk'] && fromAttribute(item['dueSk']), 'index key dueSk');
  return {
    ref: parseNodeKey(sortKey.slice(MOMENT_DIGITS + 1)),
    fireAt: Number(sortKey.slice(0, MOMENT_DIGITS)),
    sortKey,
  };
}

/** The node whose partition an item is in. */
export function refOfItem(item: Item): NodeRef {
  return parseNodeKey(parseStored(z.string(), item['pk'] && fromAttribute(item['pk']), 'key pk'));
}
