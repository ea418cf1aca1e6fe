import { createHash } from 'node:crypto';
import * as z from 'zod';
import {
  type ClusterName,
  clusterName,
  type NodeRef,
  nodeKey,
  nodeName,
  type PodUid,
  podUid,
} from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { EndedPod, EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { StoreError } from '#shared/state/store.ts';
import {
  endedSchema,
  historyBefore,
  nodeStateSchema,
  notedSchema,
  parseStored,
  recordSchema,
  revisionSchema,
} from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pack, unpack } from './packed.ts';

/** The API group and version of what the service keeps in a cluster. */
export const STATE_GROUP = 'taintward.dev/v1';
export const NODE_EVICTIONS = 'nodeevictions';

const CLUSTER_LABEL = 'taintward.dev/cluster';
const TAINTED_LABEL = 'taintward.dev/tainted';
/** What may be a label's value and an object's name, or part of one. */
const PLAIN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Of a node's name, where something follows it: an object's name has 253 characters at most. */
const NAME_CHARS = 230;

/** What is kept of a node's history, packed: some 1,500 ends. */
export const HISTORY_CHARS = 96 * 1024;
/** Of an object; etcd takes requests of 1.5 MiB (`--max-request-bytes`), and who writes larger ones has all others wait. */
export const MAX_CHARS = 512 * 1024;

/** How many scheduled evictions of a node stand so: by the kind of what holds them, if anything does. */
export type Standings = Readonly<Record<string, number>>;

/** Something that a node's history tells, besides what ended lately. */
export interface Moment {
  readonly at: EpochMs;
  readonly noted: readonly Noted[];
  readonly ended: readonly EndedPod[];
}

/** All that is kept of one node: the content of its `NodeEviction`. */
export interface KeptNode {
  readonly ref: NodeRef;
  /** 0: nothing is kept, and there is no object. */
  readonly revision: number;
  /** Of the object that was read; absent: there is none. */
  readonly resourceVersion?: string;
  readonly node: NodeState | undefined;
  readonly scheduled: readonly EvictionRecord[];
  /** What ended last, the oldest first. */
  readonly ended: readonly EndedPod[];
  /** The objects of the node that hold what ended before. */
  readonly past?: PastSlots;
  /** Pods that were seen to go, as one of those objects holds them; empty in others. */
  readonly gone: readonly GonePods[];
  /** Nothing is live on the node, and it need not be kept from then on; epoch seconds. */
  readonly ttl?: number;
  /** What ended before, and what was noted; packed. */
  readonly history?: string;
  /** Of the object. */
  readonly name: string;
}

/** Which objects beside the node's own hold what ended lately, by their number. */
export interface PastSlots {
  /** The one that is being filled. */
  readonly current: number;
  /** When what each of them holds ended last: an object of which all is older than anybody asks for is filled anew. */
  readonly newest: readonly EpochMs[];
}

/** Pods of which there is a tombstone: their UIDs and when that was, and nothing else. */
export type GonePods = readonly [at: EpochMs, outcome: 'done' | 'gone', uids: readonly PodUid[]];

const text = z.string().min(1);

const objectSchema = z.object({
  metadata: z.object({ name: text, resourceVersion: text }),
  status: z.object({
    cluster: text.transform(clusterName),
    node: text.transform(nodeName),
    revision: revisionSchema,
    /** Packed, or as they are. */
    records: z.union([text, z.looseObject({})]),
    history: text.exactOptional(),
  }),
});

const recordsSchema = z.object({
  node: nodeStateSchema.exactOptional(),
  scheduled: z.array(recordSchema),
  ended: z.array(endedSchema),
  past: z.object({ current: z.int().nonnegative(), newest: z.array(z.int()) }).exactOptional(),
  gone: z
    .array(z.tuple([z.int(), z.enum(['done', 'gone']), z.array(text.transform(podUid))]))
    .exactOptional(),
  ttl: z.int().exactOptional(),
});

const historySchema = z.array(
  z.object({ at: z.int(), noted: z.array(notedSchema), ended: z.array(endedSchema) }),
);

/** A cluster in names of objects and in labels: its own name where that can be one. */
export const clusterKey = (cluster: ClusterName): string => (PLAIN.test(cluster) ? cluster : digest(cluster));

/** How the objects of one cluster are told from others; of tainted nodes only, if that is asked. */
export const labelsOf = (cluster: ClusterName, tainted = false): Readonly<Record<string, string>> => ({
  [CLUSTER_LABEL]: clusterKey(cluster),
  ...(tainted ? { [TAINTED_LABEL]: 'true' } : {}),
});

/** The name of a node's object: in the cluster where the objects are (`own`) it is the node's. */
export const objectName = (ref: NodeRef, own: ClusterName): string =>
  ref.cluster === own ? ref.node : derivedName(ref, nodeKey(ref));

/** The name of an object that holds a part of what was on a node. */
export const pastName = (ref: NodeRef, part: number | 'history'): string =>
  derivedName(ref, `${nodeKey(ref)}#past-${part}`);

function derivedName({ node }: NodeRef, key: string): string {
  const words = node
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '');
  return `${words.slice(0, NAME_CHARS)}-${digest(key).slice(0, 12)}`.replace(/^-/, '');
}

const digest = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 40);

/** Of a node of which there is no object. */
export const nothingKept = (ref: NodeRef, name: string): KeptNode => ({
  ...{ ref, name, revision: 0, node: undefined, scheduled: [], ended: [], gone: [] },
});

/** Reads a `NodeEviction`. Throws `StoreError`, naming the node, when it cannot be read to the last record. */
export function readNodeEviction(object: unknown): KeptNode {
  const found = parseStored(objectSchema, object, 'NodeEviction');
  const { cluster, node, revision, records, history } = found.status;
  const what = `state (NodeEviction ${found.metadata.name}) of node ${node} of cluster ${cluster}`;
  const kept = parseStored(
    recordsSchema,
    typeof records === 'string' ? unpack(records, what) : records,
    what,
  );
  return {
    ...{ ref: { cluster, node }, revision, ...found.metadata },
    ...{ node: kept.node, scheduled: kept.scheduled, ended: kept.ended, gone: kept.gone ?? [] },
    ...(kept.past === undefined ? {} : { past: kept.past }),
    ...(kept.ttl === undefined ? {} : { ttl: kept.ttl }),
    ...(history === undefined ? {} : { history }),
  };
}

/** The `NodeEviction` that says all of it, in words and packed. Throws `StoreError` for more than an object of etcd may hold. */
export function nodeEviction(kept: KeptNode): KubernetesObject & { readonly status: object } {
  const { ref, node, scheduled, ended, past, gone, ttl, history } = kept;
  const records = pack({ node, scheduled, ended, past, ttl, ...(gone.length === 0 ? {} : { gone }) });
  const chars = records.length + (history?.length ?? 0);
  if (chars > MAX_CHARS) {
    throw new StoreError(
      `The state of node ${ref.node} of cluster ${ref.cluster} exceeds the limit of ${MAX_CHARS} characters: it has ${chars}, with ${scheduled.length} scheduled and ${ended.length} recently ended evictions. Run fewer short-lived pods on that node, or run Taintward outside the cluster.`,
    );
  }
  return objectOf(kept, records);
}

/** The same with its records as they are, for where nobody minds how large it is, and what ended is elsewhere. */
export const plainNodeEviction = (kept: KeptNode): KubernetesObject & { readonly status: object } => {
  const { node, scheduled, ttl } = kept;
  return objectOf(kept, { node, scheduled, ended: [], ttl });
};

function objectOf(kept: KeptNode, records: string | object): KubernetesObject & { readonly status: object } {
  const { ref, name, revision, resourceVersion, node, history } = kept;
  const tainted = (node?.taints.length ?? 0) > 0;
  return {
    apiVersion: STATE_GROUP,
    kind: 'NodeEviction',
    metadata: {
      name,
      labels: labelsOf(ref.cluster, tainted),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    status: {
      ...{ cluster: ref.cluster, node: ref.node, revision, ...summaryOf(kept) },
      records,
      ...(history === undefined ? {} : { history }),
    },
  };
}

/** Whether its countdown runs: it is neither held nor given up. */
export const isRunning = ({ gaveUpAt, held }: EvictionRecord): boolean => gaveUpAt === undefined && !held;

/** For people. */
function summaryOf({ node, scheduled }: KeptNode): object {
  const running = scheduled.filter(isRunning);
  const next = Math.min(...running.map(({ fireAt }) => fireAt));
  const taints = (node?.taints ?? []).map(
    ({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`,
  );
  return {
    taints: taints.join(','),
    scheduled: running.length,
    held: scheduled.filter(({ held }) => held).length,
    gaveUp: scheduled.filter(({ gaveUpAt }) => gaveUpAt !== undefined).length,
    ...(Number.isFinite(next) ? { nextDue: new Date(next).toISOString() } : {}),
  };
}

/** All that a node's history tells, the oldest first. Throws `StoreError`. */
export const historyOf = (kept: Pick<KeptNode, 'ref' | 'history' | 'ended'>): readonly Moment[] =>
  distinct([...packedHistory(kept), ...momentsOf(kept.ended)]);

/** The same moments, the oldest first, each of them and of what it tells once. */
export function distinct(moments: readonly Moment[]): readonly Moment[] {
  const once = <T extends object>(items: readonly T[]): readonly T[] =>
    items.length < 2 ? items : [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
  return [...Map.groupBy(inOrder(moments), ({ at }) => at)].map(([at, same]) => ({
    at,
    noted: once(same.flatMap(({ noted }) => noted)),
    ended: once(same.flatMap(({ ended }) => ended)),
  }));
}

function packedHistory({ ref, history }: Pick<KeptNode, 'ref' | 'history'>): readonly Moment[] {
  const what = `history of node ${ref.node} of cluster ${ref.cluster}`;
  return history === undefined ? [] : parseStored(historySchema, unpack(history, what), what);
}

/** What ended, by when it did. */
export function momentsOf(ended: readonly EndedPod[]): readonly Moment[] {
  const byMoment = Map.groupBy(ended, ({ endedAt }) => endedAt);
  return [...byMoment].map(([at, pods]) => ({ at, noted: [], ended: pods }));
}

const inOrder = (moments: readonly Moment[]): readonly Moment[] => moments.toSorted((a, b) => a.at - b.at);

/**
 * A node's packed history with more in it; of what does not fit, or is older than so many days, the oldest is left out.
 * `undefined`: nothing is left.
 */
export function withHistory(
  kept: Pick<KeptNode, 'ref' | 'history'>,
  more: readonly Moment[],
  now: EpochMs,
  historyDays: number,
): string | undefined {
  const before = historyBefore(now, historyDays);
  let moments: readonly Moment[] = distinct([...packedHistory(kept), ...more]).filter(
    ({ at }) => at > before,
  );
  while (moments.length > 0) {
    const packed = pack(moments);
    if (packed.length <= HISTORY_CHARS) return packed;
    moments = moments.length > 1 ? moments.slice(Math.ceil(moments.length / 4)) : halved(moments);
  }
  return undefined;
}

/** What was noted of one moment, but for the first half of it. */
function halved([only]: readonly Moment[]): readonly Moment[] {
  if (!only || only.noted.length + only.ended.length < 2) return [];
  const rest = <T>(items: readonly T[]) => items.slice(Math.ceil(items.length / 2));
  return [{ at: only.at, noted: rest(only.noted), ended: rest(only.ended) }];
}

/** Of the scheduled evictions of a node, how many stand how. */
export function standingsOf({ scheduled }: Pick<KeptNode, 'scheduled'>): Standings {
  const counts: Record<string, number> = {};
  for (const { gaveUpAt, held } of scheduled) {
    const standing = gaveUpAt === undefined ? (held?.by.kind ?? 'pending') : 'gave-up';
    counts[standing] = (counts[standing] ?? 0) + 1;
  }
  return counts;
}
