import { clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { contextConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import {
  KubeconfigError,
  namedContext,
  readKubeconfig,
} from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { ChosenCluster } from './managed-clusters.ts';

export interface ClusterChoice {
  readonly contexts: readonly string[];
  /** A path; absent: where kubectl looks. */
  readonly kubeconfig: string | undefined;
}

/**
 * The clusters that were chosen, each under its context's name; `installation` names who evicts there. Throws `KubeconfigError` for what waiting does not
 * mend: no such file, no such context, a name that cannot be a cluster's.
 */
export function chosenClusters(
  { contexts, kubeconfig }: ClusterChoice,
  installation: string,
): readonly ChosenCluster[] {
  if (contexts.length > 0) {
    const there = readKubeconfig(kubeconfig);
    for (const name of contexts) namedContext(there, name);
  }
  const apiOf = (connection: Connection) => new RestApi(connection, systemClock, installation);
  return [...new Set(contexts)].map((name) =>
    chosenCluster(name, () => contextConnection(name, kubeconfig), apiOf),
  );
}

/**
 * A cluster that is reached by what `connect` gives, asked anew whenever its access is read; `apiOf` makes its API on that. Throws
 * `KubeconfigError` for a name that cannot be a cluster's.
 */
export function chosenCluster(
  name: string,
  connect: () => Connection,
  apiOf: (connection: Connection) => RestApi,
): ChosenCluster {
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
  const api = apiOf(lasting);
  return {
    name: clusterName(name),
    api,
    readAccess() {
      found = undefined;
      found = connect();
    },
  };
}
