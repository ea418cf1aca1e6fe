import { isDeepStrictEqual } from 'node:util';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Connect } from './connect.ts';

/** The connections of `evict` to the clusters of its messages. */
export interface ClusterAccess {
  /** Rejects with `UnknownClusterError` for a cluster that isn't managed here (anymore). */
  api(cluster: ClusterName): Promise<KubernetesApi>;
}

/** The cluster of a message isn't managed here; once it is, the message succeeds. */
export class UnknownClusterError extends Error {
  override readonly name = 'UnknownClusterError';
}

/** Maximum age of a registration: a change must take effect within 30 s, and the request itself takes time. */
const REGISTRATION_MAX_AGE_MS = 20_000;
/** A cluster that isn't used for this long is dropped: it may have been removed unseen. */
const IDLE_MS = 10 * 60_000;

interface KnownCluster {
  readonly cluster: RegisteredCluster;
  readonly api: RestApi;
  age: Age;
}

export interface RegisteredClustersDeps {
  readonly registry: Pick<ClusterRegistry, 'get'>;
  readonly connect: Connect;
  readonly clock: Clock;
  /** Name of the evicting installation; see `RestApi`. */
  readonly installation: string;
}

/**
 * The clusters of the current registry. Their connections and credentials are kept from call to call. Rejects with
 * `UnknownClusterError`, or with `StoreError`.
 */
export function registeredClusters({ registry, connect, clock, installation }: RegisteredClustersDeps) {
  const knownClusters = new Map<ClusterName, KnownCluster>();
  const checks = new Map<ClusterName, Promise<RestApi>>();

  const letGoOf = (name: ClusterName): void => {
    knownClusters.get(name)?.api.close();
    knownClusters.delete(name);
  };

  const check = async (name: ClusterName): Promise<RestApi> => {
    // Start the age before the request: the answer is at least as new.
    const age = new Age(clock);
    const cluster = await registry.get(name);
    const known = knownClusters.get(name);
    if (known && isDeepStrictEqual(known.cluster, cluster)) {
      known.age = age;
      return known.api;
    }
    letGoOf(name);
    if (cluster === undefined) {
      throw new UnknownClusterError(
        `cluster ${name} is not registered. Register it with taintward clusters add ${name}: waiting messages are then processed`,
      );
    }
    const api = new RestApi(connect(cluster, 'evict'), clock, installation);
    knownClusters.set(name, { cluster, api, age });
    return api;
  };

  return {
    async api(name: ClusterName): Promise<RestApi> {
      // Use the stopwatch: calls in progress would fail if the clock were set forward.
      for (const [idle, { age }] of knownClusters) if (age.atLeastMs >= IDLE_MS) letGoOf(idle);
      const known = knownClusters.get(name);
      if (known && known.age.atMostMs < REGISTRATION_MAX_AGE_MS) return known.api;
      const checking = checks.get(name) ?? check(name).finally(() => checks.delete(name));
      checks.set(name, checking);
      return checking;
    },
  };
}
