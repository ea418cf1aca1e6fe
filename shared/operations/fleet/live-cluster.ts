import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { PermissionReview } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { ClusterObjects } from './cluster-objects.ts';

/** One cluster's API server, asked with the rights of whoever runs this process. */
export interface LiveCluster {
  readonly name: ClusterName;
  /** Nodes and pods as they are judged; of it, only what reads. */
  readonly api: Pick<
    KubernetesApi,
    'nodes' | 'pods' | 'getNode' | 'getNodeLease' | 'getPod' | 'podsOnNode' | 'skewMs'
  > &
    PermissionReview;
  /** Everything, in the API server's own words. */
  readonly objects: ClusterObjects;
  close(): void;
}

/** Nothing is asked yet: what is wrong with the access is said by each call, as `ApiError`. */
export function liveCluster(name: ClusterName, connection: Connection, clock: Clock): LiveCluster {
  const api = new RestApi(connection, clock);
  const objects = new ClusterObjects(connection);
  return {
    name,
    api,
    objects,
    close() {
      api.close();
      objects.close();
    },
  };
}
