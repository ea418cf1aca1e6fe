import middy from '@middy/core';
import { invocation } from '#shared/aws/consume.ts';
import type { Emf } from '#shared/aws/emf.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  DISCONNECTED_AFTER_MS,
  LEASE_TTL_MS,
  type LeaseReader,
  type LeaseRecord,
  type Sighting,
  sighting,
} from '#shared/state/lease.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { LAST_CONTACT_AGE, UNWATCHED_CLUSTERS } from '#shared/telemetry/metrics.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';

export interface HeartbeatDeps {
  readonly registry: Pick<ClusterRegistry, 'list'>;
  readonly leases: Pick<LeaseReader, 'readAll'>;
  readonly emf: Emf;
  /** A stopwatch that continues while the function is frozen. */
  readonly stopwatch: Stopwatch;
  readonly invoked?: () => void;
  readonly log: Log;
}

/**
 * Makes a handler that runs every minute. It counts the registered clusters whose lease no relay holds, and
 * reports the highest age of a last contact. It reads the leases instead of asking the relays: so it works
 * wherever the relays run, and detects a relay that is gone.
 */
export function createHandler({ registry, leases, emf, stopwatch, invoked, log }: HeartbeatDeps) {
  const onlooker = new Onlooker(stopwatch);
  return middy<unknown, void>()
    .use(invocation({ invoked, metrics: emf }))
    .handler(async () => {
      const { clusters: registered, strays } = await registry.list();
      const clusters = registered.map(({ name }) => name);
      onlooker.see(clusters, await leases.readAll(clusters));
      // The first look shows the holder of a lease, but not whether the holder is alive.
      if (clusters.some((cluster) => onlooker.isWatched(cluster) === undefined)) {
        await pause(LEASE_TTL_MS);
        onlooker.see(clusters, await leases.readAll(clusters));
      }
      const unwatched = clusters.filter((cluster) => !onlooker.isWatched(cluster));
      const connections = registered.flatMap((cluster) => onlooker.connectionState(cluster) ?? []);
      for (const reason of strays) log.error('registry.invalid-item', { error: reason });
      for (const cluster of unwatched) log.warn('cluster.unwatched', { cluster });
      for (const { cluster, since, sinceContactMs } of connections) {
        if (sinceContactMs > DISCONNECTED_AFTER_MS && onlooker.isWatched(cluster))
          log.warn('cluster.disconnected', { cluster, since });
      }
      emf.put(UNWATCHED_CLUSTERS, unwatched.length);
      const ages = connections.map(({ sinceContactMs }) => sinceContactMs);
      emf.put(LAST_CONTACT_AGE, Math.max(0, ...ages) / 1000);
    });
}

/** Compares two looks at a lease, at any times, to determine whether its holder is alive. */
class Onlooker {
  readonly #stopwatch: Stopwatch;
  #seen: ReadonlyMap<ClusterName, Sighting & { readonly renewed: boolean }> = new Map();

  constructor(stopwatch: Stopwatch) {
    this.#stopwatch = stopwatch;
  }

  see(clusters: readonly ClusterName[], records: readonly LeaseRecord[]): void {
    const now = this.#stopwatch();
    const recordOf = new Map(records.map((record) => [record.cluster, record]));
    this.#seen = new Map(
      clusters.map((cluster) => {
        const before = this.#seen.get(cluster);
        const seen = sighting(before, recordOf.get(cluster), now);
        return [cluster, { ...seen, renewed: before !== undefined && seen.since > before.since }];
      }),
    );
  }

  /**
   * Returns the time of the last contact with a cluster, by the clock of the lease holder, and its age. The
   * time since the lease was renewed is measured with this function's stopwatch, so no two clocks are
   * compared. `undefined`: the lease was never acquired, or the time is unknown.
   */
  connectionState({
    name: cluster,
    addedAt,
  }: RegisteredCluster): { cluster: ClusterName; since: EpochMs; sinceContactMs: number } | undefined {
    const seen = this.#seen.get(cluster);
    if (!seen?.record) return undefined;
    const { lastContactAt = addedAt, renewedAt } = seen.record;
    if (lastContactAt === undefined) return undefined;
    // A cluster that was registered again had no contact before its registration.
    const since = Math.max(lastContactAt, addedAt ?? lastContactAt);
    return {
      cluster,
      since,
      sinceContactMs: Math.max(0, renewedAt - since) + this.#stopwatch() - seen.since,
    };
  }

  /** Reports whether a relay holds the cluster's lease. `undefined`: not observed for long enough. */
  isWatched(cluster: ClusterName): boolean | undefined {
    const seen = this.#seen.get(cluster);
    if (seen?.record?.holder === undefined) return false;
    if (seen.renewed) return true;
    return this.#stopwatch() - seen.since < LEASE_TTL_MS ? undefined : false;
  }
}
