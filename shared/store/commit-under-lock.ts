import type { NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Partition } from '#shared/eviction/records.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { Commit, Store } from './store.ts';

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
 * decides again. `decide` gives its result and, when anything is to be written, the change. Rejects with
 * `ContendedPartitionError` or `StoreError`.
 */
export async function commitUnderLock<Result>(
  store: Store,
  ref: NodeRef,
  only: readonly PodUid[] | undefined,
  clock: Clock,
  decide: (partition: Partition) => { readonly result: Result; readonly change?: Commit },
): Promise<Result> {
  for (let commits = 1; commits <= MAX_COMMITS; commits++) {
    const partition = await store.load(ref, clock.now(), only);
    const { result, change } = decide(partition);
    if (!change) return result;
    if ((await store.commit(ref, partition.revision, change, clock.now())) === 'committed') return result;
    await pause(backoffMs(commits, CONFLICT_BACKOFF));
  }
  throw new ContendedPartitionError(
    `node ${ref.node} of ${ref.cluster}: lost the partition's lock ${MAX_COMMITS} times in a row; the queue retries the message`,
  );
}
