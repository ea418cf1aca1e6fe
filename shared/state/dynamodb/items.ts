import { hash } from 'node:crypto';
import * as z from 'zod';
import {
  type ClusterName,
  type NodeRef,
  nodeKey,
  nodeName,
  type PodUid,
  parseNodeKey,
} from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import type { KeysOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { nodeStateSchema, parseStored, recordSchema, revisionSchema, scheduledTtl } from '../stored.ts';
import type { Item, Key } from './dynamodb-item.ts';

/** The prefix of the sort keys of scheduled records. They sort after ended records, so that one query reads both. */
export const SCHEDULED_PREFIX = 'SCHEDULED#';
/** Follows every sort key that starts with `SCHEDULED_PREFIX`: the dollar sign follows the number sign. */
export const SCHEDULED_END = 'SCHEDULED$';

/** Index keys for a cluster's tainted nodes, and for its history, so that no single key receives all writes. */
const SHARDS = 8;

/** Digits of the last time a JavaScript date can hold, 8.64e15 ms. Padded to this length, times sort as text. */
export const MOMENT_DIGITS = 16;

export const partitionsOf = (cluster: ClusterName): string => nodeKey({ cluster, node: nodeName('') });

export const nodeItemKey = (ref: NodeRef): Key => ({ pk: nodeKey(ref), sk: 'NODE' });

export const scheduledKey = (ref: NodeRef, uid: PodUid): Key => ({
  pk: nodeKey(ref),
  sk: `${SCHEDULED_PREFIX}${uid}`,
});

export const padded = (moment: EpochMs): string => String(moment).padStart(MOMENT_DIGITS, '0');

const tainted = (cluster: ClusterName): string => `TAINTED#${cluster}#`;
export const history = (cluster: ClusterName): string => `HISTORY#${cluster}#`;

export const sharded = (beginning: string): readonly string[] =>
  Array.from({ length: SHARDS }, (_, shard) => `${beginning}${shard}`);

export const taintedKeys = (cluster: ClusterName): readonly string[] => sharded(tainted(cluster));

/** Returns the prefixes of {@link taintedKeys} and {@link historyKeys}. */
export const indexedUnder = (cluster: ClusterName): readonly string[] => [tainted(cluster), history(cluster)];

export const shardOf = (ref: NodeRef): number => hash('sha256', nodeKey(ref), 'buffer').readUInt8() % SHARDS;

/** Returns the attributes of a NODE item that depend on its content. `undefined` = removed. */
export function nodeAttributes(ref: NodeRef, node: NodeState): Item {
  const { taints, version, observedAt, podsVersion, deletedAt, taintsStamp, guardRevision } = node;
  const { retry, outage, blocked } = node;
  const isTainted = taints.length > 0;
  return {
    ...({
      taints,
      version,
      observedAt,
      podsVersion,
      deletedAt,
      taintsStamp,
      guardRevision,
      retry,
      outage,
      blocked,
    } satisfies KeysOf<NodeState>),
    clusterKey: isTainted ? `${tainted(ref.cluster)}${shardOf(ref)}` : undefined,
    clusterSort: isTainted ? ref.node : undefined,
  };
}

/** Parses a NODE item into its revision and the node's state, if there is any. Throws `StoreError`. */
export function parseNodeItem(
  ref: NodeRef,
  item: Item,
): { readonly revision: number; readonly node: NodeState | undefined } {
  const what = `item NODE of ${nodeKey(ref)}`;
  return {
    revision: parseStored(revisionSchema, item['revision'], what),
    node: item['taints'] === undefined ? undefined : parseStored(nodeStateSchema, item, what),
  };
}

export function scheduledItem(ref: NodeRef, { uid, ...record }: EvictionRecord, now: EpochMs): Item {
  return { ...scheduledKey(ref, uid), ...record, ttl: scheduledTtl({ uid, ...record }, now) };
}

export const isScheduled = (item: Item): boolean => String(item['sk']).startsWith(SCHEDULED_PREFIX);

/** Parses a SCHEDULED item, from the table or from its stream. Throws `StoreError`. */
export function parseScheduledItem(item: Item): EvictionRecord {
  const uid = String(item['sk']).slice(SCHEDULED_PREFIX.length);
  return parseStored(recordSchema, { ...item, uid }, `item ${item['sk']} of ${item['pk']}`);
}

/** Returns the node whose partition an item is in. Throws `StoreError`. */
export function refOfItem(item: Item): NodeRef {
  return parseNodeKey(parseStored(z.string(), item['pk'], 'key pk'));
}
