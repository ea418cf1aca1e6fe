import { DELTA_MAX_AGE_MS } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import { changeOf, type Noted } from '#shared/eviction/noted.ts';
import {
  type EndedPod,
  type EvictionRecord,
  type FinalRecord,
  isTombstone,
  type NodeState,
  type Partition,
} from '#shared/eviction/records.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';

/**
 * For how long the end of a record is read together with its node: longer than any delta that could schedule the pod
 * again counts. A minute is for clocks that differ.
 */
export const ENDED_WINDOW_MS = DELTA_MAX_AGE_MS + 60_000;

/** What a commit writes; all of it, or up to a chunk of it. */
export interface Commit {
  /** The NODE item's new content; absent = unchanged (the revision grows all the same). */
  readonly node?: NodeState;
  /** Records to write, each whole. */
  readonly schedule: readonly EvictionRecord[];
  /** Records that end: scheduled no longer, and kept as history. None of these pods is in `schedule`. */
  readonly end: readonly FinalRecord[];
  /** What history is to tell of records in `schedule`: written with them or not at all. Absent: nothing. */
  readonly noted?: readonly Noted[];
  /**
   * Whether the node is tainted after this commit, or deleted and its pods awaited, or has something scheduled. When not,
   * its NODE item gets a TTL; scheduled records have one of their own.
   */
  readonly live: boolean;
}

/** A node whose NODE item holds taints. */
export interface TaintedNode {
  readonly node: NodeName;
  readonly state: NodeState;
}

/**
 * Where timed evictions live: one partition per node, one lock per partition. Reads that decide are strongly
 * consistent. Every method rejects with `StoreError` when the store cannot be reached or refuses.
 */
export interface Store {
  /**
   * Reads a node's partition, strongly consistent: what is known of the node, the scheduled records, and how records
   * ended within `ENDED_WINDOW_MS` before `now`; with `only`, those of these pods. A record that stands although its
   * pod has a tombstone, because somebody crashed in the middle of `end`, is left out. What it costs depends
   * on what is read, and not on what ended before.
   */
  load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition>;

  /**
   * Writes on condition that the partition's revision is still `revision`, then increments it. All or nothing
   * up to some 98 records; beyond that in chunks, each under the lock, the NODE item's new content with the last,
   * so that a crash in between leaves a partition that the same delta completes.
   * `'conflict'`: somebody else was faster (nothing, or only earlier chunks, written): load and plan again.
   */
  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'>;

  /**
   * Ends records whatever the revision, which grows: what has happened (`done`, `gone`) has happened. First it is
   * written how they ended, then the revision, and then they are deleted.
   */
  end(ref: NodeRef, pods: readonly FinalRecord[], now: EpochMs): Promise<void>;

  /** The nodes of a cluster whose NODE item holds taints; may lag behind by a moment. */
  taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode>;
}

/** A partition of what was read of it. `ended`: the oldest first. */
export function partitionOf(
  node: Pick<Partition, 'ref' | 'revision' | 'node'>,
  records: Iterable<EvictionRecord>,
  ended: Iterable<EndedPod>,
): Partition {
  const newest = new Map<PodUid, EndedPod>();
  for (const pod of ended) {
    const before = newest.get(pod.uid);
    // A UID never returns, whatever a clock that is behind wrote when.
    if (!before || !isTombstone(before)) newest.set(pod.uid, pod);
  }
  const scheduled = new Map<PodUid, EvictionRecord>();
  for (const record of records) {
    const end = newest.get(record.uid);
    if (!end || !isTombstone(end)) scheduled.set(record.uid, record);
  }
  return { ...node, scheduled, ended: newest };
}

/** The store could not be reached or refused; the message says what to do. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

/**
 * How often a commit that lost the race for a partition's lock is decided again before its message is given
 * back to the queue. A node's deltas of one queue come one at a time, so only the other queue and `evict` compete.
 */
const MAX_COMMITS = 8;
const CONFLICT_BACKOFF: Backoff = { firstMs: 20, longestMs: 160 };

/** The partition's lock was lost too often in a row; the queue brings the message back. */
export class ContendedPartitionError extends Error {
  override readonly name = 'ContendedPartitionError';
}

/**
 * Reads a partition (`only`: the records of these pods), decides, and commits under its lock; on a conflict reads and
 * decides again. `decide` gives its result and, when anything is to be written, the change, of which is noted here what
 * history is to tell. Rejects with `ContendedPartitionError` or `StoreError`.
 */
export async function commitUnderLock<Result>(
  store: Store,
  ref: NodeRef,
  only: readonly PodUid[] | undefined,
  clock: Clock,
  decide: (partition: Partition) => { readonly result: Result; readonly change?: Omit<Commit, 'noted'> },
): Promise<Result> {
  for (let commits = 1; commits <= MAX_COMMITS; commits++) {
    const partition = await store.load(ref, clock.now(), only);
    const { result, change } = decide(partition);
    if (!change) return result;
    const noted = change.schedule
      .map((record) => changeOf(partition.scheduled.get(record.uid), record))
      .filter((note) => note !== undefined);
    const commit = noted.length === 0 ? change : { ...change, noted };
    if ((await store.commit(ref, partition.revision, commit, clock.now())) === 'committed') return result;
    await pause(backoffMs(commits, CONFLICT_BACKOFF));
  }
  throw new ContendedPartitionError(
    `node ${ref.node} of ${ref.cluster}: lost the partition's lock ${MAX_COMMITS} times in a row; the queue retries the message`,
  );
}
