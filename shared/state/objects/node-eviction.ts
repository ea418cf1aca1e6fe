import { createHash } from 'node:crypto';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
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

export const STATE_GROUP = 'taintward.dev/v1';
export const NODE_EVICTIONS = 'nodeevictions';

const CLUSTER_LABEL = 'taintward.dev/cluster';
const TAINTED_LABEL = 'taintward.dev/tainted';
/** Matches text that may be a label's value, and an object's name or a part of it. */
const PLAIN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** An object's name has at most 253 characters. */
const NAME_CHARS = 230;

/** Maximum of characters of a node's packed history: some 1,500 ends. */
export const HISTORY_CHARS = 96 * 1024;
/** etcd accepts requests of 1.5 MiB (`--max-request-bytes`), and large requests delay all others. */
export const MAX_CHARS = 512 * 1024;

/** Numbers of a node's scheduled evictions, by state: pending, failed, or the kind of gate that holds them. */
export type StateCounts = Readonly<Record<string, number>>;

export interface HistoryEvents {
  readonly at: EpochMs;
  readonly noted: readonly Noted[];
  readonly ended: readonly EndedPod[];
}

export interface KeptNode {
  readonly ref: NodeRef;
  /** 0: nothing is stored, and there is no object. */
  readonly revision: number;
  readonly resourceVersion?: string;
  readonly node: NodeState | undefined;
  readonly scheduled: readonly EvictionRecord[];
  /** The latest ends, the oldest first. */
  readonly ended: readonly EndedPod[];
  /** The objects of the node that hold earlier ends. */
  readonly past?: PastSlots;
  /** Tombstones of pods, in the objects for earlier ends. Empty in a node's own object. */
  readonly gone: readonly GonePods[];
  /** The time from which the object need not be kept, because nothing is live on the node. In epoch seconds. */
  readonly ttl?: number;
  readonly history?: string;
  readonly name: string;
}

/** The objects beside a node's own that hold recent ends, by number. */
export interface PastSlots {
  readonly current: number;
  /** The latest end in each object. An object is refilled once all of its ends are too old to matter. */
  readonly newest: readonly EpochMs[];
}

/** Tombstones of pods: time, outcome and UIDs, and nothing else. */
export type GonePods = readonly [at: EpochMs, outcome: 'evicted' | 'already-gone', uids: readonly PodUid[]];

const text = z.string().min(1);

const objectSchema = z.object({
  metadata: z.object({ name: text, resourceVersion: text }),
  status: z.object({
    cluster: text.transform(clusterName),
    node: text.transform(nodeName),
    revision: revisionSchema,
    /** Packed or plain. */
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
    .array(z.tuple([z.int(), z.enum(['evicted', 'already-gone']), z.array(text.transform(podUid))]))
    .exactOptional(),
  ttl: z.int().exactOptional(),
});

const historySchema = z.array(
  z.object({ at: z.int(), noted: z.array(notedSchema), ended: z.array(endedSchema) }),
);

/** Returns a cluster's key in object names and labels: its own name, if that is valid there. */
export const clusterKey = (cluster: ClusterName): string => (PLAIN.test(cluster) ? cluster : digest(cluster));

/** Returns the labels of one cluster's objects, or of its tainted nodes' objects only. */
export const labelsOf = (cluster: ClusterName, tainted = false): Readonly<Record<string, string>> => ({
  [CLUSTER_LABEL]: clusterKey(cluster),
  ...(tainted ? { [TAINTED_LABEL]: 'true' } : {}),
});

/** Returns the name of a node's object. In the cluster that holds the objects (`own`), it is the node's name. */
export const objectName = (ref: NodeRef, own: ClusterName): string =>
  ref.cluster === own ? ref.node : derivedName(ref, nodeKey(ref));

/** Returns the name of an object that holds a part of a node's past. */
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

export const nothingKept = (ref: NodeRef, name: string): KeptNode => ({
  ref,
  name,
  revision: 0,
  node: undefined,
  scheduled: [],
  ended: [],
  gone: [],
});

/** Parses a `NodeEviction`. Throws `StoreError`, naming the node, unless every record is readable. */
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
    ref: { cluster, node },
    revision,
    ...found.metadata,
    node: kept.node,
    scheduled: kept.scheduled,
    ended: kept.ended,
    gone: kept.gone ?? [],
    ...defined({ past: kept.past, ttl: kept.ttl, history }),
  };
}

/** Returns the `NodeEviction` with packed records. Throws `StoreError` if they exceed an object's size limit. */
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

/** With plain records and without ends, for a store without a size limit that keeps ends elsewhere. */
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
      ...defined({ resourceVersion }),
    },
    status: {
      cluster: ref.cluster,
      node: ref.node,
      revision,
      ...summaryOf(kept),
      records,
      ...defined({ history }),
    },
  };
}

export const isRunning = ({ gaveUpAt, held }: EvictionRecord): boolean => gaveUpAt === undefined && !held;

function summaryOf({ node, scheduled }: KeptNode): object {
  const running = scheduled.filter(isRunning);
  const next = Math.min(...running.map(({ dueAt }) => dueAt));
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

export const historyOf = (kept: Pick<KeptNode, 'ref' | 'history' | 'ended'>): readonly HistoryEvents[] =>
  distinct([...packedHistory(kept), ...momentsOf(kept.ended)]);

/** Returns distinct entries with distinct content, the oldest first. */
export function distinct(moments: readonly HistoryEvents[]): readonly HistoryEvents[] {
  const once = <T extends object>(items: readonly T[]): readonly T[] =>
    items.length < 2 ? items : [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
  return [...Map.groupBy(inOrder(moments), ({ at }) => at)].map(([at, same]) => ({
    at,
    noted: once(same.flatMap(({ noted }) => noted)),
    ended: once(same.flatMap(({ ended }) => ended)),
  }));
}

function packedHistory({ ref, history }: Pick<KeptNode, 'ref' | 'history'>): readonly HistoryEvents[] {
  const what = `history of node ${ref.node} of cluster ${ref.cluster}`;
  return history === undefined ? [] : parseStored(historySchema, unpack(history, what), what);
}

export function momentsOf(ended: readonly EndedPod[]): readonly HistoryEvents[] {
  const byMoment = Map.groupBy(ended, ({ endedAt }) => endedAt);
  return [...byMoment].map(([at, pods]) => ({ at, noted: [], ended: pods }));
}

const inOrder = (moments: readonly HistoryEvents[]): readonly HistoryEvents[] =>
  moments.toSorted((a, b) => a.at - b.at);

/** Adds entries to a node's packed history. Omits those that are too old, and the oldest if there is no room. */
export function withHistory(
  kept: Pick<KeptNode, 'ref' | 'history'>,
  more: readonly HistoryEvents[],
  now: EpochMs,
  historyDays: number,
): string | undefined {
  const before = historyBefore(now, historyDays);
  let moments: readonly HistoryEvents[] = distinct([...packedHistory(kept), ...more]).filter(
    ({ at }) => at > before,
  );
  while (moments.length > 0) {
    const packed = pack(moments);
    if (packed.length <= HISTORY_CHARS) return packed;
    moments = moments.length > 1 ? moments.slice(Math.ceil(moments.length / 4)) : halved(moments);
  }
  return undefined;
}

function halved([only]: readonly HistoryEvents[]): readonly HistoryEvents[] {
  if (!only || only.noted.length + only.ended.length < 2) return [];
  const rest = <T>(items: readonly T[]) => items.slice(Math.ceil(items.length / 2));
  return [{ at: only.at, noted: rest(only.noted), ended: rest(only.ended) }];
}

export function countStates({ scheduled }: Pick<KeptNode, 'scheduled'>): StateCounts {
  const counts: Record<string, number> = {};
  for (const { gaveUpAt, held } of scheduled) {
    const state = gaveUpAt === undefined ? (held?.by.kind ?? 'pending') : 'failed';
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}
