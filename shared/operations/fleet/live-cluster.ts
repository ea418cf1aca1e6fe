import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { PermissionReview } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { ClusterObjects } from './cluster-objects.ts';

/** A cluster's API server, used with the permissions of this process. */
export interface LiveCluster {
  /** Nodes and pods as Taintward evaluates them. Only methods that read. */
  readonly api: Pick<KubernetesApi, 'getNode' | 'getNodeLease' | 'getPod' | 'skewMs'> & PermissionReview;
  /** All objects, in the API server's JSON. */
  readonly objects: ClusterObjects;
  close(): void;
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
