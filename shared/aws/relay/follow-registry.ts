import { isDeepStrictEqual } from 'node:util';
import type { Connect } from '#shared/access/connect.ts';
import type { Relay } from '#shared/engine/watch/relay.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';

/** Interval of registry reads: an added or removed cluster must take effect within 30 s. */
export const REGISTRY_POLL_MS = 10_000;

export interface RegistryFollowerDeps {
  readonly registry: Pick<ClusterRegistry, 'list'>;
  readonly follows: (cluster: RegisteredCluster) => boolean;
  readonly connect: Connect;
  /** The installation that evicts in these clusters, as marks on their pods name it. `undefined`: unknown. */
  readonly installation: string | undefined;
  readonly relay: Pick<Relay, 'add' | 'remove'>;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface Followed {
  readonly cluster: RegisteredCluster;
  readonly api: RestApi;
}

/**
 * Adds and removes clusters as the registry changes; changed access does both. While it is unreadable, the known ones are
 * followed. An unreachable cluster is retried, and delays no other.
 */
export class RegistryFollower {
  readonly #deps: RegistryFollowerDeps;
  readonly #followed = new Map<ClusterName, Followed>();
  #error: unknown = 'they have not been read yet';

  constructor(deps: RegistryFollowerDeps) {
    this.#deps = deps;
  }

  /** Why the registered clusters are not known; `undefined`: they are. */
  get error(): unknown {
    return this.#error;
  }

  /** Follows the registry until `signal` aborts. Never rejects. */
  async run(): Promise<void> {
    const { registry, follows, log, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        const { clusters } = await registry.list();
        this.#error = undefined;
        const registered = new Map(clusters.filter(follows).map((cluster) => [cluster.name, cluster]));
        for (const item of [...this.#followed.values()]) {
          if (!isDeepStrictEqual(item.cluster, registered.get(item.cluster.name))) this.#end(item);
        }
        for (const cluster of registered.values())
          if (!this.#followed.has(cluster.name)) this.#start(cluster);
      } catch (error) {
        this.#error = error;
        log.error('registry.unreadable', { error });
      }
      await pause(REGISTRY_POLL_MS, signal);
    }
  }

  #start(cluster: RegisteredCluster): void {
    const { connect, installation, relay, log } = this.#deps;
    let api: RestApi;
    try {
      api = new RestApi(connect(cluster, 'relay'), systemClock, installation);
    } catch (error) {
      // The error affects only this cluster, which is retried at the next poll.
      log.error('cluster.access-denied', { cluster: cluster.name, error });
      return;
    }
    this.#followed.set(cluster.name, { cluster, api });
    relay.add(cluster.name, api);
    log.info('cluster.added', { cluster: cluster.name, access: cluster.access.kind });
  }

  #end({ cluster: { name }, api }: Followed): void {
    this.#followed.delete(name);
    this.#deps.log.info('cluster.removed', { cluster: name });
    // Don't wait: the cluster's last deltas wait as long as its queue is unreachable.
    void this.#deps.relay.remove(name).finally(() => api.close());
  }
}

/** Clusters without an agent. `only`: names, or name prefixes followed by `*`. Absent: all. */
export const followedFromOutside =
  (only?: readonly string[]) =>
  ({ name, access }: RegisteredCluster): boolean =>
    access.kind !== 'agent' &&
    (only?.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each)) ?? true);
