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

export interface FollowRegistryDeps {
  readonly registry: Pick<ClusterRegistry, 'list'>;
  readonly follows: (cluster: RegisteredCluster) => boolean;
  readonly connect: Connect;
  /** The installation that evicts in these clusters, as marks on their pods name it. `undefined`: unknown. */
  readonly installation: string | undefined;
  readonly relay: Pick<Relay, 'add' | 'remove'>;
  /** Called after each read of the registry; with an error, it failed. */
  readonly read: (error?: unknown) => void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface Followed {
  readonly cluster: RegisteredCluster;
  readonly api: RestApi;
}

/**
 * Adds and removes clusters as the registry changes, until `signal` aborts; changed access does both. While it is
 * unreadable, the known ones are followed. An unreachable cluster is retried, and delays no other. Never rejects.
 */
export async function followRegistry({
  registry,
  follows,
  connect,
  installation,
  relay,
  read,
  log,
  signal,
}: FollowRegistryDeps): Promise<void> {
  const followed = new Map<ClusterName, Followed>();

  const start = (cluster: RegisteredCluster): void => {
    let api: RestApi;
    try {
      api = new RestApi(connect(cluster, 'relay'), systemClock, installation);
    } catch (error) {
      // The error affects only this cluster, which is retried at the next poll.
      log.error('cluster.access-denied', { cluster: cluster.name, error });
      return;
    }
    followed.set(cluster.name, { cluster, api });
    relay.add(cluster.name, api);
    log.info('cluster.added', { cluster: cluster.name, access: cluster.access.kind });
  };

  const end = ({ cluster: { name }, api }: Followed): void => {
    followed.delete(name);
    log.info('cluster.removed', { cluster: name });
    // Don't wait: the cluster's last deltas wait as long as its queue is unreachable.
    void relay.remove(name).finally(() => api.close());
  };

  while (!signal.aborted) {
    try {
      const { clusters } = await registry.list();
      read();
      const registered = new Map(clusters.filter(follows).map((cluster) => [cluster.name, cluster]));
      for (const item of [...followed.values()]) {
        if (!isDeepStrictEqual(item.cluster, registered.get(item.cluster.name))) end(item);
      }
      for (const cluster of registered.values()) if (!followed.has(cluster.name)) start(cluster);
    } catch (error) {
      read(error);
      log.error('registry.unreadable', { error });
    }
    await pause(REGISTRY_POLL_MS, signal);
  }
}

/** Clusters without an agent. `only`: names, or name prefixes followed by `*`. Absent: all. */
export const followedFromOutside =
  (only?: readonly string[]) =>
  ({ name, access }: RegisteredCluster): boolean =>
    access.kind !== 'agent' &&
    (only?.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each)) ?? true);
