import type { NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Ending, EvictionRecord } from '#shared/eviction/records.ts';
import { compareVersions } from '#shared/eviction/version.ts';
import { commitUnderLock } from '#shared/store/commit-under-lock.ts';
import type { Store } from '#shared/store/store.ts';
import type { Clock } from '#shared/time/clock.ts';

/** What live state says of due records. */
export interface Correction {
  readonly schedule: readonly EvictionRecord[];
  readonly end: readonly Ending[];
}

/**
 * Stores what live state says of due records, under the partition's lock. A record that a delta or another pass
 * changed meanwhile is left as it is: that one knew more. Returns the pods whose records were corrected.
 */
export async function correctRecords(
  ref: NodeRef,
  { schedule, end }: Correction,
  deps: { readonly store: Store; readonly clock: Clock },
): Promise<ReadonlySet<PodUid>> {
  const uids = [...schedule, ...end].map(({ uid }) => uid);
  if (uids.length === 0) return new Set();
  return commitUnderLock(deps.store, ref, uids, deps.clock, ({ scheduled }) => {
    const stands = ({ uid, version }: EvictionRecord | Ending): boolean => {
      const stored = scheduled.get(uid);
      return stored !== undefined && compareVersions(stored.version, version) === 0;
    };
    const standing = { schedule: schedule.filter(stands), end: end.filter(stands) };
    const result = new Set([...standing.schedule, ...standing.end].map(({ uid }) => uid));
    // Only the relay's deltas say that a node is untainted, so they alone let its items expire.
    return result.size > 0 ? { result, change: { ...standing, live: true } } : { result };
  });
}
