import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';

/** How `evict` reaches the clusters it is told about. */
export interface ClusterAccess {
  /** Rejects with `UnknownClusterError` for a cluster nobody manages here (any more). */
  api(cluster: ClusterName): Promise<KubernetesApi>;
}

/** A message speaks of a cluster that is not managed here; once it is, the message succeeds. */
export class UnknownClusterError extends Error {
  override readonly name = 'UnknownClusterError';
}
