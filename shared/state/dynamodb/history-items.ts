import * as z from 'zod';
import { type ClusterName, type NodeRef, nodeKey, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { Cause, EndedPod, FinalRecord } from '#shared/eviction/records.ts';
import type { GonePod } from '#shared/state/history.ts';
import { endedSchema, historyTtl, notedSchema, parseStored } from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Item } from './dynamodb-item.ts';
import { history, MOMENT_DIGITS, padded, sharded, shardOf } from './items.ts';

/** The prefix of the sort keys of ended records. The time follows, so recent records are a range. */
const ENDED_PREFIX = 'ENDED#';

/** Follows every sort key that starts with `ENDED_PREFIX`. */
export const ENDED_END = 'ENDED$';

/** All other changes to evictions, by time. They sort before all items that decisions need. */
const CHANGED_PREFIX = 'CHANGED#';

export const CHANGED_END = 'CHANGED$';

/** Removal times of evicted pods, by time, beside the cluster's lease, because a relay writes them. */
const GONE_PREFIX = 'GONE#';

export const GONE_END = 'GONE$';

export const endedSince = (moment: EpochMs): string => `${ENDED_PREFIX}${padded(Math.max(0, moment))}`;

export const changedSince = (moment: EpochMs): string => `${CHANGED_PREFIX}${padded(Math.max(0, moment))}`;

/** Returns the first sort key of `GONE` items whose last pod was removed at that time or later. */
export const goneSince = (moment: EpochMs): string => `${GONE_PREFIX}${padded(Math.max(0, moment))}`;

/** Returns the index keys of one cluster's history, in the order of {@link historySince}. */
export const historyKeys = (cluster: ClusterName): readonly string[] => sharded(history(cluster));

/** Returns the first sort key in the index of history at that time or later. */
export const historySince = (moment: EpochMs): string => padded(Math.max(0, moment));

export const isEnded = (item: Item): boolean => String(item['sk']).startsWith(ENDED_PREFIX);

export interface HistoryItemOf {
  readonly ref: NodeRef;
  readonly at: EpochMs;
  /** Unique among the node's items of the same time. */
  readonly pass: string;
  readonly days: number;
}

/**
 * Returns one item for the ends of some of a node's pods. Shared values are written once: a pod costs about 180 bytes.
 */
export function endedItem(place: HistoryItemOf, pods: readonly FinalRecord[]): Item {
  const starts = new Common<EpochMs>();
  const versions = new Common<FinalRecord['version']>();
  const common = commonOf();
  return {
    ...historyItem(ENDED_PREFIX, place),
    pods: pods.map((pod) => ({
      ...common.pod(pod),
      ...(pod.startedAt === undefined ? {} : { startedAt: starts.indexOf(pod.startedAt) }),
      version: versions.indexOf(pod.version),
    })),
    ...common.values(),
    starts: starts.values,
    versions: versions.values,
  };
}

export function changedItem(place: HistoryItemOf, pods: readonly Noted[]): Item {
  const gates = new Common<unknown>();
  const common = commonOf();
  return {
    ...historyItem(CHANGED_PREFIX, place),
    pods: pods.map((pod) => ({
      ...common.pod(pod),
      ...('by' in pod ? { by: gates.indexOf(pod.by) } : {}),
      ...('from' in pod ? { from: common.causesOf(pod.from) } : {}),
    })),
    ...common.values(),
    gates: gates.values,
  };
}

function historyItem(prefix: string, { ref, at, pass, days }: HistoryItemOf): Item {
  return {
    pk: nodeKey(ref),
    sk: `${prefix}${padded(at)}#${pass}`,
    clusterKey: `${history(ref.cluster)}${shardOf(ref)}`,
    clusterSort: `${padded(at)}#${ref.node}#${pass}`,
    ttl: historyTtl(at, days),
  };
}

/** Returns the item attributes for removal times, the last of them at `last`. A pod costs 30 bytes. */
export const goneAttributes = (last: EpochMs, pods: readonly GonePod[], days: number): Item => ({
  pods: Object.fromEntries(pods.map(({ uid, at }) => [packed(uid), last - at])),
  ttl: historyTtl(last, days),
});

const goneSchema = z.object({
  sk: z.string().regex(/^GONE#\d{16}#/),
  pods: z.record(z.string().min(1), z.int().nonnegative()),
});

export function parseGoneItem(item: Item): readonly GonePod[] {
  const { sk, pods } = parseStored(goneSchema, item, nameOf(item));
  const last = Number(sk.slice(GONE_PREFIX.length).slice(0, MOMENT_DIGITS));
  return Object.entries(pods).map(([uid, beforeMs]) => ({ uid: unpacked(uid), at: last - beforeMs }));
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The prefix of a UID that is not a UUID and is stored unchanged. */
const AS_IT_IS = '=';

const packed = (uid: PodUid): string =>
  UUID.test(uid) ? Buffer.from(uid.replaceAll('-', ''), 'hex').toString('base64url') : `${AS_IT_IS}${uid}`;

function unpacked(text: string): PodUid {
  if (text.startsWith(AS_IT_IS)) return podUid(text.slice(AS_IT_IS.length));
  const hex = Buffer.from(text, 'base64url').toString('hex');
  return podUid(hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'));
}

/** Collects the values that all kinds of history have of each pod, for one item. */
function commonOf() {
  const namespaces = new Common<string>();
  const causes = new Common<readonly Cause[]>();
  const causesOf = <T extends { readonly causes: readonly Cause[] }>(given: T) => ({
    ...given,
    causes: causes.indexOf(given.causes),
  });
  return {
    causesOf,
    pod: (pod: FinalRecord | Noted) => ({ ...causesOf(pod), namespace: namespaces.indexOf(pod.namespace) }),
    values: () => ({ namespaces: namespaces.values, causes: causes.values }),
  };
}

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

const historyItemSchema = z.object({
  sk: z.string().regex(/^(ENDED|CHANGED)#\d{16}#/),
  pods: z.array(z.record(z.string(), z.unknown())),
  namespaces: z.array(z.unknown()),
  causes: z.array(z.unknown()),
  starts: z.array(z.unknown()).default([]),
  versions: z.array(z.unknown()).default([]),
  gates: z.array(z.unknown()).default([]),
});

export function momentOfHistory(item: Item): EpochMs {
  const { sk } = parseStored(historyItemSchema, item, nameOf(item));
  return Number(sk.slice(sk.indexOf('#') + 1).slice(0, MOMENT_DIGITS));
}

/** Parses an ENDED item. With `only`, returns only these pods. Throws `StoreError`. */
export function parseEndedItem(item: Item, only?: ReadonlySet<unknown>): readonly EndedPod[] {
  const what = nameOf(item);
  const { pods, namespaces, causes, starts, versions } = parseStored(historyItemSchema, item, what);
  const endedAt = momentOfHistory(item);
  const wanted = only ? pods.filter(({ uid }) => only.has(uid)) : pods;
  return wanted.map(({ startedAt, ...pod }) =>
    parseStored(
      endedSchema,
      {
        ...pod,
        endedAt,
        namespace: namespaces[Number(pod['namespace'])],
        causes: causes[Number(pod['causes'])],
        version: versions[Number(pod['version'])],
        ...(startedAt === undefined ? {} : { startedAt: starts[Number(startedAt)] }),
      },
      what,
    ),
  );
}

const fromSchema = z.object({ dueAt: z.unknown(), causes: z.unknown() });

export function parseChangedItem(item: Item): readonly Noted[] {
  const name = nameOf(item);
  const { pods, namespaces, causes, gates } = parseStored(historyItemSchema, item, name);
  return pods.map(({ by: gate, from, ...pod }) => {
    const before = from === undefined ? undefined : parseStored(fromSchema, from, name);
    return parseStored(
      notedSchema,
      {
        ...pod,
        namespace: namespaces[Number(pod['namespace'])],
        causes: causes[Number(pod['causes'])],
        ...(gate === undefined ? {} : { by: gates[Number(gate)] }),
        ...(before ? { from: { ...before, causes: causes[Number(before.causes)] } } : {}),
      },
      name,
    );
  });
}

const nameOf = (item: Item): string => `item ${item['sk']} of ${item['pk']}`;
