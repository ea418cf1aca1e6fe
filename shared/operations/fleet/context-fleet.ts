import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ContextFleet } from './fleet.ts';
import { liveCluster } from './live-cluster.ts';

/**
 * Makes a fleet of the cluster of a kubeconfig context, named after the context. Its calls reject with
 * `KubeconfigError` if the context doesn't exist.
 */
export function contextFleet(access: LocalContextAccess, clock: Clock): ContextFleet {
  const name = clusterName(access.context);
  return {
    kind: 'context',
    where: `context ${access.context}`,
    clusters: async () => [name],
    manages: async (cluster) => cluster === name,
    cluster: async () => liveCluster(name, localContextConnection(access), clock),
    close: () => undefined,
  };
}
