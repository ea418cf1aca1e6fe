import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { PermitLimit } from '#shared/eviction/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Grants permits to evict, for each workload of a cluster, to all processes together. Permits outlive every process.
 */
export interface Permits {
  /**
   * Takes permits for pods of one workload, as many as its limit allows. Resolves with a time for each pod, in order.
   * `now`: the pod has a permit, which lasts for `PERMIT_LASTS_MS`. Any other time: the pod may ask again then.
   * `workload`: its name in the cluster. A permit counts once it is taken, whether or not its pod is evicted. Rejects
   * with `StoreError`.
   */
  take(
    cluster: ClusterName,
    workload: string,
    pods: readonly PodUid[],
    limit: PermitLimit,
    now: EpochMs,
  ): Promise<readonly EpochMs[]>;
}
