import { resolve } from 'node:path';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/connection.ts';
import { contextConnection, inClusterConnection } from '#shared/kubernetes/kubeconfig.ts';
import { KubeconfigError, namedContext, readKubeconfig } from '#shared/kubernetes/kubeconfig-file.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { ChosenCluster } from './managed-clusters.ts';
import type { ReachedBy } from './reached-by.ts';

/** The name under which the cluster that this process runs in is managed. */
const IN_CLUSTER = 'in-cluster';

export interface ClusterChoice {
  readonly contexts: readonly string[];
  /** A path; absent: where kubectl looks. */
  readonly kubeconfig: string | undefined;
  readonly inCluster: boolean;
}

/**
 * The clusters that were chosen, each under its context's name; `installation` names who evicts there. Throws `KubeconfigError` for what waiting does not
 * mend: no such file, no such context, a name that cannot be a cluster's, `inCluster` outside of a pod.
 */
export function chosenClusters(
  { contexts, kubeconfig, inCluster }: ClusterChoice,
  installation: string,
): readonly ChosenCluster[] {
  if (contexts.length > 0) {
    const there = readKubeconfig(kubeconfig);
    for (const name of contexts) namedContext(there, name);
  }
  if (inCluster) inClusterConnection();
  return [
    ...[...new Set(contexts)].map((name) =>
      chosen(name, installation, () => contextConnection(name, kubeconfig)),
    ),
    ...(inCluster ? [chosen(IN_CLUSTER, installation, () => inClusterConnection())] : []),
  ];
}

/** How each of them is reached, for others than this process. */
export function reachedBy({
  contexts,
  kubeconfig,
  inCluster,
}: ClusterChoice): ReadonlyMap<ClusterName, ReachedBy> {
  const file = kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) };
  return new Map<ClusterName, ReachedBy>([
    ...contexts.map((context) => [clusterName(context), { context, ...file }] as const),
    ...(inCluster ? [[clusterName(IN_CLUSTER), { inCluster }] as const] : []),
  ]);
}

function chosen(name: string, installation: string, connect: () => Connection): ChosenCluster {
  if (name.includes('#')) {
    throw new KubeconfigError(`context "${name}": a cluster's name must not contain #: rename the context.`);
  }
  let found: Connection | undefined;
  const connection = () => {
    found ??= connect();
    return found;
  };
  const lasting: Connection = {
    get host() {
      return found?.host ?? `context "${name}"`;
    },
    requestOptions: async () => connection().requestOptions(),
    forgetCredentials() {
      found?.forgetCredentials?.();
    },
  };
  const api = new RestApi(lasting, systemClock, installation);
  return {
    name: clusterName(name),
    api,
    readAccess() {
      found = undefined;
      found = connect();
    },
  };
}
