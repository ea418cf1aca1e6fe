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
  /** A path; absent: kubectl's default. */
  readonly kubeconfig: string | undefined;
}

/**
 * Returns the chosen clusters under their contexts' names. Throws `KubeconfigError` for errors that don't go away by
 * themselves: no such file or context, or a name that isn't valid for a cluster. `installation` names the evictor.
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

/** Returns a cluster that is reached by `connect`, called at each read of the access. Throws `KubeconfigError`. */
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
