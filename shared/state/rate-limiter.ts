import type { ClusterName } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Gives out permits to evict at the rates of each cluster, to all processes together. */
export interface RateLimiter {
  /**
   * Takes permits for pods of a cluster, as many as its rates leave: for each pod, in order, `undefined` where it has one, which lasts
   * for `RATE_PERMIT_LASTS_MS`, or else its turn. A permit once taken counts, whether its pod goes or not. Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]>;
}
