import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { CancelReason, Cause, EndedPod, EvictionRecord, Outcome } from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Events of an eviction: its schedule, its changes, and its outcomes. */
export const EVICTION_EVENTS = [
  'scheduled',
  'rescheduled',
  'held',
  'released',
  'blocked',
  'would-evict',
  'failed',
  'evicted',
  'already-gone',
  'canceled',
  'unregistered',
] as const satisfies readonly ('scheduled' | Noted['event'] | Outcome)[];
export type EvictionEvent = (typeof EVICTION_EVENTS)[number];

export interface HistoryEntry {
  readonly at: EpochMs;
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: PodUid;
  readonly event: EvictionEvent;
  /** The deadline at that time. Absent: no taint required the eviction. */
  readonly dueAt?: EpochMs;
  /** The causes of the deadline. */
  readonly causes: readonly Cause[];
  /** With `rescheduled`: the deadline before. */
  readonly previousDueAt?: EpochMs;
  /** With `held`, `would-evict`, `released`, and `already-gone`: the gate that kept the pod from being evicted. */
  readonly by?: EvictionGate;
  /** With `evicted`: milliseconds after `dueAt`. */
  readonly delayMs?: number;
  /** When the pod was removed, as its relay observed it. Absent: no relay did. */
  readonly removedAt?: EpochMs;
  readonly cancelReason?: CancelReason;
  readonly error?: string;
  /** Set when another client deleted the pod. */
  readonly deleted?: Deletion;
}

export interface HistoryQuery {
  readonly cluster: ClusterName;
  readonly node?: NodeName;
  readonly namespace?: string;
  readonly pod?: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

export interface History {
  /** Yields entries, the newest first. Rejects with `StoreError`. */
  entries(query: HistoryQuery): AsyncIterable<HistoryEntry>;
  /** Records when evicted pods were removed: any number of them, in few writes. Rejects with `StoreError`. */
  noteGone(cluster: ClusterName, pods: readonly GonePod[]): Promise<void>;
  /** Resolves with the nodes from which any taint manager evicted pods since `from`. Rejects with `StoreError`. */
  nodesEvictedFrom(cluster: ClusterName, from: EpochMs): Promise<ReadonlySet<NodeName>>;
}

export interface GonePod {
  readonly uid: PodUid;
  readonly at: EpochMs;
}

export interface HistoryItem {
  readonly ref: NodeRef;
  readonly at: EpochMs;
  readonly noted: readonly Noted[];
  readonly ended: readonly EndedPod[];
}

export interface ScheduledEviction {
  readonly ref: NodeRef;
  readonly record: EvictionRecord;
}

export interface StoredHistory {
  /** Read before `items`, so that evictions that end meanwhile are in one of them. */
  readonly scheduled: Several<ScheduledEviction>;
  /** All events since `from`, including those after the end of the range; the newest first. */
  readonly items: Several<HistoryItem>;
  /** All pods that were removed since `from`. */
  readonly gone: Several<GonePod>;
}

type Several<T> = AsyncIterable<T> | Iterable<T>;

/**
 * Yields entries, the newest first. When an eviction was scheduled is in its record or end; if it moved later, its
 * notes have the original deadline.
 */
export async function* entriesOf(
  { scheduled, items, gone }: StoredHistory,
  query: HistoryQuery,
): AsyncIterable<HistoryEntry> {
  const asks = ({ at }: HistoryEntry) => at >= query.from && at <= query.to;
  const begun = new Begun();
  for await (const { ref, record } of scheduled) {
    if (isAbout(query, ref, record)) begun.add(beginning(ref, record, record.startedAt));
  }
  const removedAt = new Map<PodUid, EpochMs>();
  for await (const { uid, at } of gone) removedAt.set(uid, Math.min(at, removedAt.get(uid) ?? at));
  for await (const { ref, at, noted, ended } of items) {
    yield* begun.since(at).filter(asks);
    for (const note of noted) {
      if (!isAbout(query, ref, note)) continue;
      if (note.event === 'rescheduled') begun.move(note.uid, note.from);
      yield* [notedEntry(ref, note, at)].filter(asks);
    }
    for (const end of ended) {
      if (!isAbout(query, ref, end)) continue;
      if (end.startedAt !== undefined) begun.add(beginning(ref, end, end.startedAt));
      yield* [endedEntry(ref, end, removedAt.get(end.uid))].filter(asks);
    }
  }
  yield* begun.since(query.from).filter(asks);
}

export async function nodesWithEvictions(items: Several<HistoryItem>): Promise<ReadonlySet<NodeName>> {
  const nodes = new Set<NodeName>();
  for await (const { ref, ended } of items) {
    if (ended.some(({ outcome, deleted }) => outcome === 'evicted' || deleted?.by === 'taint-manager'))
      nodes.add(ref.node);
  }
  return nodes;
}

const isAbout = (
  { node, namespace, pod }: HistoryQuery,
  ref: NodeRef,
  about: Pick<EvictionRecord, 'namespace' | 'name'>,
): boolean =>
  (node ?? ref.node) === ref.node &&
  (namespace ?? about.namespace) === about.namespace &&
  (pod ?? about.name) === about.name;

type Who = Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'dueAt' | 'causes'>;

const entry = (
  { cluster, node }: NodeRef,
  { uid, namespace, name: pod, dueAt, causes }: Who,
  at: EpochMs,
  event: EvictionEvent,
): HistoryEntry => ({
  at,
  cluster,
  node,
  namespace,
  pod,
  uid,
  event,
  ...(causes.length === 0 ? {} : { dueAt }),
  causes,
});

const beginning = (ref: NodeRef, who: Who, at: EpochMs): HistoryEntry => entry(ref, who, at, 'scheduled');

function notedEntry(ref: NodeRef, note: Noted, at: EpochMs): HistoryEntry {
  const added = entry(ref, note, at, note.event);
  switch (note.event) {
    case 'rescheduled':
      return { ...added, previousDueAt: note.from.dueAt };
    case 'held':
    case 'would-evict':
    case 'released':
      return { ...added, by: note.by };
    case 'blocked':
    case 'failed':
      return { ...added, error: note.error };
    default:
      return note satisfies never;
  }
}

function endedEntry(ref: NodeRef, end: EndedPod, removedAt: EpochMs | undefined): HistoryEntry {
  const { outcome, delayMs, cancelReason, error, deleted, by: gate, endedAt } = end;
  return {
    ...entry(ref, end, endedAt, outcome),
    ...defined({ delayMs }),
    ...(removedAt !== undefined && (outcome === 'evicted' || deleted) ? { removedAt } : {}),
    ...(cancelReason ? { cancelReason } : {}),
    ...defined({ error, deleted, by: gate }),
  };
}

class Begun {
  /** The oldest first. */
  readonly #entries: HistoryEntry[] = [];

  /** Adds an entry once: a record that ended during the read is found twice, as scheduled and as ended. */
  add(begun: HistoryEntry): void {
    let place = this.#entries.length;
    for (let low = 0, high = place; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.at ?? 0) > begun.at) high = middle;
      else low = middle + 1;
      place = low;
    }
    for (let same = place - 1; this.#entries[same]?.at === begun.at; same--) {
      if (this.#entries[same]?.uid === begun.uid) return;
    }
    this.#entries.splice(place, 0, begun);
  }

  /** Sets the original deadline of the pod's latest entry, from before a move. */
  move(uid: PodUid, { dueAt, causes }: Pick<EvictionRecord, 'dueAt' | 'causes'>): void {
    const index = this.#entries.findLastIndex((begun) => begun.uid === uid);
    const begun = this.#entries[index];
    if (begun) this.#entries[index] = { ...begun, dueAt, causes };
  }

  /** Removes and returns the entries from `at` or later, the newest first. */
  since(at: EpochMs): readonly HistoryEntry[] {
    const first = this.#entries.findLastIndex((begun) => begun.at < at) + 1;
    return this.#entries.splice(first).reverse();
  }
}
