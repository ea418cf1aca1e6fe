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

/** The clusters of the current registry. Their connections and credentials are kept from call to call. */
export class RegisteredClusters implements ClusterAccess {
  readonly #deps: RegisteredClustersDeps;
  readonly #known = new Map<ClusterName, KnownCluster>();
  readonly #checks = new Map<ClusterName, Promise<RestApi>>();

  constructor(deps: RegisteredClustersDeps) {
    this.#deps = deps;
  }

  /** Rejects with `UnknownClusterError`, or with `StoreError`. */
  async api(name: ClusterName): Promise<RestApi> {
    this.#letGoOfIdle();
    const known = this.#known.get(name);
    if (known && known.age.atMostMs < REGISTRATION_MAX_AGE_MS) return known.api;
    const check = this.#checks.get(name) ?? this.#check(name).finally(() => this.#checks.delete(name));
    this.#checks.set(name, check);
    return check;
  }

  async #check(name: ClusterName): Promise<RestApi> {
    // Start the age before the request: the answer is at least as new.
    const age = new Age(this.#deps.clock);
    const cluster = await this.#deps.registry.get(name);
    const known = this.#known.get(name);
    if (known && isDeepStrictEqual(known.cluster, cluster)) {
      known.age = age;
      return known.api;
    }
    this.#letGoOf(name);
    if (cluster === undefined) {
      throw new UnknownClusterError(
        `cluster ${name} is not registered. Register it with taintward clusters add ${name}: waiting messages are then processed`,
      );
    }
    const { connect, clock, installation } = this.#deps;
    const api = new RestApi(connect(cluster, 'evict'), clock, installation);
    this.#known.set(name, { cluster, api, age });
    return api;
  }

  #letGoOfIdle(): void {
    // Use the stopwatch: calls in progress would fail if the clock were set forward.
    for (const [name, { age }] of this.#known) if (age.atLeastMs >= IDLE_MS) this.#letGoOf(name);
  }

  #letGoOf(name: ClusterName): void {
    this.#known.get(name)?.api.close();
    this.#known.delete(name);
  }
}
