import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { PermitLimit } from '#shared/eviction/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Permits for each workload of a cluster, granted to all processes together; they outlive every process. */
export interface Permits {
  /**
   * Takes permits for pods of one workload. Resolves with a time for each pod, in order: `now` is a permit for
   * `PERMIT_LASTS_MS`; any other, when to ask again. A permit counts once taken, whether or not its pod is evicted.
   * Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    workload: string,
    pods: readonly PodUid[],
    limit: PermitLimit,
    now: EpochMs,
  ): Promise<readonly EpochMs[]>;
}
