import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { inClusterConnection, loadContexts } from '#shared/kubernetes/kubeconfig.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig-file.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { preflight } from '#shared/kubernetes/rights.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** The name under which the cluster that this process runs in is managed. */
const IN_CLUSTER = 'in-cluster';

export interface ClusterChoice {
  readonly contexts: readonly string[];
  /** A path; absent: where kubectl looks. */
  readonly kubeconfig: string | undefined;
  readonly inCluster: boolean;
}

/**
 * The chosen clusters, each under its context's name. Throws `KubeconfigError`: no such context, no such file, a
 * name that cannot be a cluster's.
 */
export function managedClusters(choice: ClusterChoice): ReadonlyMap<ClusterName, RestApi> {
  const { contexts, kubeconfig, inCluster } = choice;
  const named =
    contexts.length === 0
      ? []
      : loadContexts({ contexts, ...(kubeconfig === undefined ? {} : { kubeconfig }) });
  const own = inCluster ? [{ name: IN_CLUSTER, connection: inClusterConnection() }] : [];
  const clusters = new Map<ClusterName, RestApi>();
  for (const { name, connection } of [...named, ...own]) {
    if (name.includes('#')) {
      throw new KubeconfigError(
        `context "${name}": a cluster's name must not contain #: rename the context.`,
      );
    }
    clusters.set(clusterName(name), new RestApi(connection));
  }
  return clusters;
}

/**
 * Asks each cluster whether its credentials are accepted and have the rights the service needs. Rejects with
 * `ApiError` when not. A cluster that does not answer is no reason to refuse: the others need their service, and
 * it is managed from the moment it answers.
 */
export async function checkAccess(clusters: ReadonlyMap<ClusterName, RestApi>, log: Log): Promise<void> {
  await Promise.all(
    [...clusters].map(async ([cluster, api]) => {
      try {
        await preflight(api);
      } catch (error) {
        const refused = error instanceof ApiError && (error.status === 401 || error.status === 403);
        if (refused || !(error instanceof ApiError)) throw error;
        log.warn('cluster.unreachable', { cluster, reason: error });
      }
    }),
  );
}
