import { clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/connection.ts';
import { contextConnection, inClusterConnection } from '#shared/kubernetes/kubeconfig.ts';
import { KubeconfigError, namedContext, readKubeconfig } from '#shared/kubernetes/kubeconfig-file.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { ChosenCluster } from './managed-clusters.ts';

/** The name under which the cluster that this process runs in is managed. */
const IN_CLUSTER = 'in-cluster';

export interface ClusterChoice {
  readonly contexts: readonly string[];
  /** A path; absent: where kubectl looks. */
  readonly kubeconfig: string | undefined;
  readonly inCluster: boolean;
}

/**
 * The clusters that were chosen, each under its context's name. Throws `KubeconfigError` for what waiting does not
 * mend: no such file, no such context, a name that cannot be a cluster's, `inCluster` outside of a pod.
 */
export function chosenClusters({ contexts, kubeconfig, inCluster }: ClusterChoice): readonly ChosenCluster[] {
  if (contexts.length > 0) {
    const there = readKubeconfig(kubeconfig);
    for (const name of contexts) namedContext(there, name);
  }
  if (inCluster) inClusterConnection();
  return [
    ...[...new Set(contexts)].map((name) => chosen(name, () => contextConnection(name, kubeconfig))),
    ...(inCluster ? [chosen(IN_CLUSTER, () => inClusterConnection())] : []),
  ];
}

function chosen(name: string, connect: () => Connection): ChosenCluster {
  if (name.includes('#')) {
    throw new KubeconfigError(`context "${name}": a cluster's name must not contain #: rename the context.`);
  }
  let found: Connection | undefined;
  const connection = () => {
    found ??= connect();
    return found;
  };
  const api = new RestApi({
    get host() {
      return found?.host ?? `context "${name}"`;
    },
    requestOptions: async () => connection().requestOptions(),
    forgetCredentials() {
      found?.forgetCredentials?.();
    },
  });
  return {
    name: clusterName(name),
    api,
    readAccess() {
      found = undefined;
      found = connect();
    },
  };
}
