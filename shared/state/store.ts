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
import { type Backoff, untilSuccessful } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * The time for which an end is read with its node: longer than the age of any delta that could schedule the pod again,
 * plus a minute for clocks that differ.
 */
export const ENDED_WINDOW_MS = DELTA_MAX_AGE_MS + 60_000;

export interface Commit {
  /** The NODE item's new content. Absent = unchanged (the revision grows nevertheless). */
  readonly node?: NodeState;
  /** Records to write, each as a whole. */
  readonly schedule: readonly EvictionRecord[];
  /** Records that end: they are no longer scheduled, and are kept as history. None of these pods is in `schedule`. */
  readonly end: readonly FinalRecord[];
  /** Notes for the history of records in `schedule`, written together with them or not at all. Absent: none. */
  readonly noted?: readonly Noted[];
  /**
   * After this commit, the node is tainted, deleted with remaining pods, or has a record. Otherwise, its NODE item gets
   * a TTL. Records have their own.
   */
  readonly live: boolean;
}

export interface TaintedNode {
  readonly node: NodeName;
  readonly state: NodeState;
}

/**
 * One partition per node, one lock per partition. Reads for decisions are strongly consistent. Every method rejects
 * with `StoreError`.
 */
export interface Store {
  /**
   * Reads a node's partition: state, scheduled records, and the ends within `ENDED_WINDOW_MS` before `now`; with
   * `only`, of these pods. A record whose pod has a tombstone is omitted: a process crashed in `end`. Earlier ends cost
   * nothing.
   */
  load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition>;

  /**
   * Writes if the revision is still `revision`, and increments it. Up to some 98 records are all or nothing. More are
   * written in chunks, each under the lock, the NODE item last; the same delta completes them after a crash.
   * `'conflict'`: nothing, or only earlier chunks, is written. Load and plan again.
   */
  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'>;

  /**
   * Ends records at any revision, as the evictions have ended (`done`, `gone`). Writes the ends, then the revision,
   * then deletes the records.
   */
  end(ref: NodeRef, pods: readonly FinalRecord[], now: EpochMs): Promise<void>;

  /** Yields the nodes of a cluster whose NODE item has taints. They may be briefly outdated. */
  taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode>;
}

/** Returns a partition from the data read. `ended`: the oldest first. */
export function partitionOf(
  node: Pick<Partition, 'ref' | 'revision' | 'node'>,
  records: Iterable<EvictionRecord>,
  ended: Iterable<EndedPod>,
): Partition {
  const newest = new Map<PodUid, EndedPod>();
  for (const pod of ended) {
    const before = newest.get(pod.uid);
    // A UID is never reused, so a tombstone stays, whatever times a slow clock wrote.
    if (!before || !isTombstone(before)) newest.set(pod.uid, pod);
  }
  const scheduled = new Map<PodUid, EvictionRecord>();
  for (const record of records) {
    const end = newest.get(record.uid);
    if (!end || !isTombstone(end)) scheduled.set(record.uid, record);
  }
  return { ...node, scheduled, ended: newest };
}

/** The store is unreachable or rejected the call. The message names the fix. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

/**
 * Maximum of attempts at a commit; then the message returns to its queue. A node's deltas of one queue arrive one at a
 * time, so only the other queue and `evict` compete.
 */
const MAX_COMMITS = 8;
const CONFLICT_BACKOFF: Backoff = { firstMs: 20, longestMs: 160 };

/** The partition's lock was lost too often in a row. The queue redelivers the message. */
export class ContendedPartitionError extends Error {
  override readonly name = 'ContendedPartitionError';
}

/**
 * Reads a partition (`only`: these pods), decides, and commits under its lock, again after a conflict. `decide` returns
 * its result and perhaps the commit without its notes. Rejects with `ContendedPartitionError` or `StoreError`.
 */
export async function commitUnderLock<Result>(
  store: Store,
  ref: NodeRef,
  only: readonly PodUid[] | undefined,
  clock: Clock,
  decide: (partition: Partition) => { readonly result: Result; readonly change?: Omit<Commit, 'noted'> },
): Promise<Result> {
  const attempt = async () => {
    const partition = await store.load(ref, clock.now(), only);
    const { result, change } = decide(partition);
    if (!change) return { result };
    const noted = change.schedule
      .map((record) => changeOf(partition.scheduled.get(record.uid), record))
      .filter((note) => note !== undefined);
    const commit = noted.length === 0 ? change : { ...change, noted };
    const outcome = await store.commit(ref, partition.revision, commit, clock.now());
    return outcome === 'committed' ? { result } : undefined;
  };
  const exhausted = () =>
    new ContendedPartitionError(
      `node ${ref.node} of ${ref.cluster}: lost the partition's lock ${MAX_COMMITS} times in a row; the queue retries the message`,
    );
  return untilSuccessful(attempt, { attempts: MAX_COMMITS, backoff: CONFLICT_BACKOFF, exhausted });
}
