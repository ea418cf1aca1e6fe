import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';

/** Gives out turns to evict, for each cluster to all processes together. */
export interface RateLimiter {
  /**
   * Takes turns for up to so many pods of a cluster, at `rate` pods per second: when each may go, soonest first. Those for
   * whom there is none within `TURNS_AHEAD_MS` ask again later. A turn once taken is used up, and passes
   * when nobody goes in it. Rejects with `StoreError`.
   */
  take(cluster: ClusterName, pods: number, rate: number, now: EpochMs): Promise<readonly EpochMs[]>;
}
