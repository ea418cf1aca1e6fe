import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { PermissionReview } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { ClusterObjects } from './cluster-objects.ts';

/** A cluster's API server, used with the permissions of this process. */
export interface LiveCluster {
  /** Nodes and pods as Taintward evaluates them. Only methods that read. */
  readonly api: Pick<KubernetesApi, 'getNode' | 'getNodeLease' | 'getPod' | 'skewMs' | 'uids'> &
    PermissionReview;
  /** All objects, in the API server's JSON. */
  readonly objects: ClusterObjects;
  close(): void;
}

/** Uses a cluster of a fleet, and then closes its connection. Rejects with `FleetError` if there is no access. */
export async function withCluster<T>(
  fleet: { cluster(name: ClusterName): Promise<LiveCluster> },
  name: ClusterName,
  use: (live: LiveCluster) => Promise<T>,
): Promise<T> {
  const live = await fleet.cluster(name);
  try {
    return await use(live);
  } finally {
    live.close();
  }
}

/** Makes a cluster without any request. If the access is wrong, each call rejects with `ApiError`. */
export function liveCluster(connection: Connection, clock: Clock): LiveCluster {
  const api = new RestApi(connection, clock);
  const objects = new ClusterObjects(connection);
  return {
    api,
    objects,
    close() {
      api.close();
      objects.close();
    },
  };
}
