import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type {
  CancelReason,
  DeadlineCause,
  EndedPod,
  EvictionRecord,
  Outcome,
} from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** What happened to a pod's eviction: it was scheduled, something became of it, or it ended. */
export interface HistoryEntry {
  readonly at: EpochMs;
  readonly ref: NodeRef;
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly what: 'scheduled' | Noted['what'] | Outcome;
  /** When it was to go, as was known then. */
  readonly fireAt: EpochMs;
  /** Why; empty: nothing of ours called for it. */
  readonly reasons: readonly DeadlineCause[];
  /** With `moved`: when it was to go before. */
  readonly movedFrom?: EpochMs;
  /** With `held`, `would-have` and `freed`: what forbade it. */
  readonly by?: EvictionGate;
  /** With `done`: how long after `fireAt`. */
  readonly lateMs?: number;
  /** With what was deleted, by us or somebody else: when the pod was gone, as its relay saw it; absent: none did. */
  readonly goneAt?: EpochMs;
  readonly cancelled?: CancelReason;
  readonly error?: string;
  /** Somebody else deleted the pod. */
  readonly deleted?: Deletion;
}

/** Of which pods, and of which time (both ends included), history is asked for. */
export interface HistoryQuery {
  readonly cluster: ClusterName;
  readonly node?: NodeName;
  readonly namespace?: string;
  /** A pod's name. */
  readonly pod?: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** What became of evictions, for as long as it is kept. */
export interface History {
  /** The newest first. Rejects with `StoreError`. */
  entries(query: HistoryQuery): AsyncIterable<HistoryEntry>;
  /** Notes when evicted pods were gone; any number of them, in few writes. Rejects with `StoreError`. */
  noteGone(cluster: ClusterName, pods: readonly GonePod[]): Promise<void>;
}

/** An evicted pod that is gone. */
export interface GonePod {
  readonly uid: PodUid;
  readonly at: EpochMs;
}

/** Where pods were evicted lately. */
export interface RecentEvictions {
  /** The nodes from which a taint manager, be it this service, evicted pods since `from`. Rejects with `StoreError`. */
  nodesEvictedFrom(cluster: ClusterName, from: EpochMs): Promise<ReadonlySet<NodeName>>;
}

/** What is stored of one moment of a node: what was noted, or how records ended. */
export interface HistoryItem {
  readonly ref: NodeRef;
  readonly at: EpochMs;
  readonly noted: readonly Noted[];
  readonly ended: readonly EndedPod[];
}

/** What is stored, as it is read. */
export interface StoredHistory {
  /** What is scheduled by now; read before `items`, so that what ends meanwhile is in one of them. */
  readonly scheduled: AsyncIterable<{ readonly ref: NodeRef; readonly record: EvictionRecord }>;
  /** Everything since `from`, also what is younger than asked for; the newest first. */
  readonly items: AsyncIterable<HistoryItem>;
  /** All that were gone since `from`. */
  readonly gone: AsyncIterable<GonePod>;
}

/**
 * Tells what is stored as entries, the newest first. When an eviction was scheduled is not stored by itself: its record
 * says it, or its end, and what it was then, if it moved since, say the notes of that.
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
  const goneAt = new Map<PodUid, EpochMs>();
  for await (const { uid, at } of gone) goneAt.set(uid, Math.min(at, goneAt.get(uid) ?? at));
  for await (const { ref, at, noted, ended } of items) {
    yield* begun.since(at).filter(asks);
    for (const note of noted) {
      if (!isAbout(query, ref, note)) continue;
      if (note.what === 'moved') begun.move(note.uid, note.from);
      yield* [notedEntry(ref, note, at)].filter(asks);
    }
    for (const end of ended) {
      if (!isAbout(query, ref, end)) continue;
      if (end.startedAt !== undefined) begun.add(beginning(ref, end, end.startedAt));
      yield* [endedEntry(ref, end, goneAt.get(end.uid))].filter(asks);
    }
  }
  yield* begun.since(query.from).filter(asks);
}

/** The nodes of those items by which pods were evicted. */
export async function nodesWithEvictions(items: AsyncIterable<HistoryItem>): Promise<ReadonlySet<NodeName>> {
  const nodes = new Set<NodeName>();
  for await (const { ref, ended } of items) {
    if (ended.some(({ outcome, deleted }) => outcome === 'done' || deleted?.by === 'taint-manager'))
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

type Who = Pick<HistoryEntry, 'uid' | 'namespace' | 'name' | 'fireAt' | 'reasons'>;

const entry = (
  ref: NodeRef,
  { uid, namespace, name, fireAt, reasons }: Who,
  at: EpochMs,
  what: HistoryEntry['what'],
): HistoryEntry => ({ at, ref, uid, namespace, name, what, fireAt, reasons });

const beginning = (ref: NodeRef, who: Who, at: EpochMs): HistoryEntry => entry(ref, who, at, 'scheduled');

function notedEntry(ref: NodeRef, note: Noted, at: EpochMs): HistoryEntry {
  const told = entry(ref, note, at, note.what);
  switch (note.what) {
    case 'moved':
      return { ...told, movedFrom: note.from.fireAt };
    case 'held':
    case 'would-have':
    case 'freed':
      return { ...told, by: note.by };
    case 'blocked':
    case 'gave-up':
      return { ...told, error: note.error };
    default:
      return note satisfies never;
  }
}

function endedEntry(ref: NodeRef, end: EndedPod, goneAt: EpochMs | undefined): HistoryEntry {
  const { outcome, lateMs, cancelled, error, deleted, endedAt } = end;
  return {
    ...entry(ref, end, endedAt, outcome),
    ...(lateMs === undefined ? {} : { lateMs }),
    ...(goneAt !== undefined && (outcome === 'done' || deleted) ? { goneAt } : {}),
    ...(cancelled ? { cancelled } : {}),
    ...(error === undefined ? {} : { error }),
    ...(deleted ? { deleted } : {}),
  };
}

/** That evictions were scheduled, in the order of these moments, until it is time to tell of them. */
class Begun {
  /** The oldest first. */
  readonly #entries: HistoryEntry[] = [];

  /** One that is both scheduled and ended was read twice. */
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

  /** The pod's latest was scheduled otherwise than its record says. */
  move(uid: PodUid, { fireAt, reasons }: Pick<HistoryEntry, 'fireAt' | 'reasons'>): void {
    const index = this.#entries.findLastIndex((begun) => begun.uid === uid);
    const begun = this.#entries[index];
    if (begun) this.#entries[index] = { ...begun, fireAt, reasons };
  }

  /** Those that were scheduled at `at` or later, the newest first; they are told then. */
  since(at: EpochMs): readonly HistoryEntry[] {
    const first = this.#entries.findLastIndex((begun) => begun.at < at) + 1;
    return this.#entries.splice(first).reverse();
  }
}
