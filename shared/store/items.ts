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
import type { EndedPod, Ending, EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import type { Item, Key } from './dynamodb-table.ts';
import {
  endedSchema,
  endedTtl,
  nodeStateSchema,
  parseStored,
  recordSchema,
  revisionSchema,
  scheduledTtl,
} from './stored.ts';

/** Sort keys of scheduled records start with this. They follow those of what ended, so that one query reads both. */
export const SCHEDULED_PREFIX = 'SCHEDULED#';
/** Sort keys of what ended start with this, and go on with the moment: recent ones are a range. */
const ENDED_PREFIX = 'ENDED#';
/** Follows every sort key that starts with `ENDED_PREFIX`: the dollar sign follows the number sign. */
export const ENDED_END = 'ENDED$';

/** A cluster's tainted nodes, and what ended there, have this many keys in the index, so that none is written to by all. */
const SHARDS = 8;

/** Digits of the last moment a JavaScript date can hold, 8.64e15 ms: padded to it, moments sort as text. */
const MOMENT_DIGITS = 16;

export const nodeItemKey = (ref: NodeRef): Key => ({ pk: nodeKey(ref), sk: 'NODE' });

export const scheduledKey = (ref: NodeRef, uid: PodUid): Key => ({
  pk: nodeKey(ref),
  sk: `${SCHEDULED_PREFIX}${uid}`,
});

/** The first sort key of what ended at that moment or later. */
export const endedSince = (moment: EpochMs): string => `${ENDED_PREFIX}${padded(Math.max(0, moment))}`;

/** A moment as text that sorts as moments do. */
export const padded = (moment: EpochMs): string => String(moment).padStart(MOMENT_DIGITS, '0');

/** What one cluster's tainted nodes stand under in the index. */
export const taintedKeys = (cluster: ClusterName): readonly string[] =>
  Array.from({ length: SHARDS }, (_, shard) => `TAINTED#${cluster}#${shard}`);

const shardOf = (ref: NodeRef): number =>
  createHash('sha256').update(nodeKey(ref)).digest().readUInt8() % SHARDS;

/** The attributes of a NODE item that its content decides; `undefined` = removed. */
export function nodeAttributes(ref: NodeRef, node: NodeState): Item {
  const { taints, version, observedAt, podsVersion, deletedAt, taintsStamp, guardRevision, retry } = node;
  const tainted = taints.length > 0;
  return {
    ...{ taints, version, observedAt, podsVersion, deletedAt, taintsStamp, guardRevision, retry },
    clusterKey: tainted ? `TAINTED#${ref.cluster}#${shardOf(ref)}` : undefined,
    clusterSort: tainted ? ref.node : undefined,
  };
}

/** Reads a NODE item: the revision, and what is known of the node, if anything. Throws `StoreError`. */
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

/** A record as an item, whole. Its UID is in its key. */
export function scheduledItem(ref: NodeRef, { uid, ...record }: EvictionRecord, now: EpochMs): Item {
  return { ...scheduledKey(ref, uid), ...record, ttl: scheduledTtl({ uid, ...record }, now) };
}

export const isEnded = (item: Item): boolean => String(item['sk']).startsWith(ENDED_PREFIX);

export const isScheduled = (item: Item): boolean => String(item['sk']).startsWith(SCHEDULED_PREFIX);

/** Reads a SCHEDULED item, from the table or from its stream. Throws `StoreError`. */
export function parseScheduledItem(item: Item): EvictionRecord {
  const uid = String(item['sk']).slice(SCHEDULED_PREFIX.length);
  return parseStored(recordSchema, { ...item, uid }, `item ${item['sk']} of ${item['pk']}`);
}

/** The node whose partition an item is in. Throws `StoreError`. */
export function refOfItem(item: Item): NodeRef {
  return parseNodeKey(parseStored(z.string(), item['pk'], 'key pk'));
}

/**
 * How some pods of a node ended, as one item. `pass` is unique among those of the node that end at this moment. What
 * pods have in common is written once, so that a pod costs about 150 bytes.
 */
export function endedItem(ref: NodeRef, pods: readonly Ending[], now: EpochMs, pass: string): Item {
  const namespaces = new Common<string>();
  const reasons = new Common<Ending['reasons']>();
  const versions = new Common<Ending['version']>();
  const sort = `${padded(now)}#${pass}`;
  return {
    pk: nodeKey(ref),
    sk: `${ENDED_PREFIX}${sort}`,
    pods: pods.map((pod) => ({
      uid: pod.uid,
      name: pod.name,
      ns: namespaces.indexOf(pod.namespace),
      since: pod.podSince,
      due: pod.fireAt,
      end: pod.outcome,
      why: reasons.indexOf(pod.reasons),
      v: versions.indexOf(pod.version),
      late: pod.lateMs,
      cancelled: pod.cancelled,
      error: pod.error,
    })),
    namespaces: namespaces.values,
    reasons: reasons.values,
    versions: versions.values,
    clusterKey: `ENDED#${ref.cluster}#${shardOf(ref)}`,
    clusterSort: `${padded(now)}#${ref.node}#${pass}`,
    ttl: endedTtl(now),
  };
}

/** Distinct values in the order in which they were met. */
class Common<T> {
  readonly values: T[] = [];
  readonly #indexes = new Map<string, number>();

  indexOf(value: T): number {
    const key = JSON.stringify(value);
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    this.#indexes.set(key, this.values.length);
    return this.values.push(value) - 1;
  }
}

const endedItemSchema = z.object({
  sk: z.string().regex(/^ENDED#\d{16}#/),
  pods: z.array(z.record(z.string(), z.unknown())),
  namespaces: z.array(z.unknown()),
  reasons: z.array(z.unknown()),
  versions: z.array(z.unknown()),
});

/** Reads an ENDED item; with `only`, what it says of these pods. Throws `StoreError`. */
export function parseEndedItem(item: Item, only?: ReadonlySet<unknown>): readonly EndedPod[] {
  const what = `item ${item['sk']} of ${item['pk']}`;
  const { sk, pods, namespaces, reasons, versions } = parseStored(endedItemSchema, item, what);
  const endedAt = Number(sk.slice(ENDED_PREFIX.length).slice(0, MOMENT_DIGITS));
  const wanted = only ? pods.filter(({ uid }) => only.has(uid)) : pods;
  return wanted.map(({ uid, name, ns, since, due, end, why, v, late, ...more }) =>
    parseStored(
      endedSchema,
      {
        ...{ ...more, uid, name, podSince: since, fireAt: due, outcome: end, endedAt },
        namespace: namespaces[Number(ns)],
        reasons: reasons[Number(why)],
        version: versions[Number(v)],
        ...(late === undefined ? {} : { lateMs: late }),
      },
      what,
    ),
  );
}
