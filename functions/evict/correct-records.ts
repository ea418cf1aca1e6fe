import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { compareVersions } from '#shared/eviction/version.ts';
import { commitUnderLock } from '#shared/store/commit-under-lock.ts';
import type { Store } from '#shared/store/store.ts';
import type { Clock } from '#shared/time/clock.ts';

/**
 * Stores what live state says of due records, under the partition's lock. A record that a delta or another pass
 * changed meanwhile is left as it is: that one knew more. Returns the records that were written.
 */
export async function correctRecords(
  ref: NodeRef,
  records: readonly EvictionRecord[],
  deps: { readonly store: Store; readonly clock: Clock },
): Promise<readonly EvictionRecord[]> {
  if (records.length === 0) return [];
  const uids = records.map(({ uid }) => uid);
  return commitUnderLock(deps.store, ref, { kind: 'pods', uids }, deps.clock, (partition) => {
    const evictions = records.filter((record) => {
      const stored = partition.evictions.get(record.uid);
      return stored?.state === 'scheduled' && compareVersions(stored.version, record.version) === 0;
    });
    if (evictions.length === 0) return { result: [] };
    // Only the relay's deltas say that a node is untainted, so they alone let its items expire.
    return { result: evictions, change: { evictions, live: true } };
  });
}
