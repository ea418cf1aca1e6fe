import type { ClusterName } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Grants permits to evict at the rates of each cluster, to all processes together. */
export interface RateLimiter {
  /**
   * Takes permits for pods of a cluster, as many as its rates allow. Resolves with an item for each pod, in order.
   * `undefined`: the pod has a permit, which lasts for `RATE_PERMIT_LASTS_MS`. Otherwise, the item is its turn. A
   * permit counts once it is taken, whether or not its pod is evicted. Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]>;
}
