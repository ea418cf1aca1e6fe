import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { PermitLimit } from '#shared/eviction/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Gives out permits to evict, for each workload of a cluster to all processes together. They outlive every process. */
export interface Permits {
  /**
   * Takes permits for pods of one workload, as many as its limit leaves: for each pod, in order, `now` where it has one, which lasts for
   * `PERMIT_LASTS_MS`, or else when it may ask again. `workload`: what names it in the cluster. A permit once taken counts, whether
   * its pod goes or not. Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    workload: string,
    pods: readonly PodUid[],
    limit: PermitLimit,
    now: EpochMs,
  ): Promise<readonly EpochMs[]>;
}
