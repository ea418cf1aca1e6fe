import middy from '@middy/core';
import type { Emf } from '#shared/aws/emf.ts';
import { invocation } from '#shared/aws/invocation.ts';
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
  readonly leases: Pick<LeaseReader, 'lookAtAll'>;
  readonly emf: Emf;
  /** Goes on while the function is frozen. */
  readonly stopwatch: Stopwatch;
  /** Called as each invocation begins. */
  readonly invoked?: () => void;
  readonly log: Log;
}

/**
 * Called every minute: counts the registered clusters that no relay speaks for, and says for how long none has heard from
 * the one that was not heard from for longest. Asks the leases and not the relays, so that it does not matter where they
 * run, and that one that is gone altogether is noticed.
 */
export function createHandler({ registry, leases, emf, stopwatch, invoked, log }: HeartbeatDeps) {
  const onlooker = new Onlooker(stopwatch);
  return middy<unknown, void>()
    .use(invocation({ flush: () => emf.flush(), invoked: () => invoked?.() }))
    .handler(async () => {
      const { clusters: registered, strays } = await registry.list();
      const clusters = registered.map(({ name }) => name);
      onlooker.see(clusters, await leases.lookAtAll(clusters));
      // Who looks for the first time sees who holds a lease, but not whether he lives.
      if (clusters.some((cluster) => onlooker.isWatched(cluster) === undefined)) {
        await pause(LEASE_TTL_MS);
        onlooker.see(clusters, await leases.lookAtAll(clusters));
      }
      const unwatched = clusters.filter((cluster) => !onlooker.isWatched(cluster));
      const heard = registered.flatMap((cluster) => onlooker.connectionState(cluster) ?? []);
      for (const reason of strays) log.error('registry.invalid-item', { error: reason });
      for (const cluster of unwatched) log.warn('cluster.unwatched', { cluster });
      for (const { cluster, since, unheardMs } of heard) {
        if (unheardMs > DISCONNECTED_AFTER_MS && onlooker.isWatched(cluster))
          log.warn('cluster.disconnected', { cluster, since });
      }
      emf.put(UNWATCHED_CLUSTERS, 'Count', unwatched.length);
      emf.put(LAST_CONTACT_AGE, 'Seconds', Math.max(0, ...heard.map(({ unheardMs }) => unheardMs)) / 1000);
    });
}

/** Tells from two looks at a lease, whenever they were, whether its holder lives. */
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
   * Since when, by the clock of who held its lease, no relay has heard from a cluster, and for how long. What passed since
   * the lease was renewed is of our stopwatch, so no two clocks are compared. `undefined`: its lease was never taken, or nobody
   * knows since when.
   */
  connectionState({
    name: cluster,
    addedAt,
  }: RegisteredCluster): { cluster: ClusterName; since: EpochMs; unheardMs: number } | undefined {
    const seen = this.#seen.get(cluster);
    if (!seen?.record) return undefined;
    const { heardAt = addedAt, renewedAt } = seen.record;
    if (heardAt === undefined) return undefined;
    // One that was registered anew was not listened to before.
    const since = Math.max(heardAt, addedAt ?? heardAt);
    return { cluster, since, unheardMs: Math.max(0, renewedAt - since) + this.#stopwatch() - seen.since };
  }

  /** `undefined`: not seen for long enough. */
  isWatched(cluster: ClusterName): boolean | undefined {
    const seen = this.#seen.get(cluster);
    if (seen?.record?.holder === undefined) return false;
    if (seen.renewed) return true;
    return this.#stopwatch() - seen.since < LEASE_TTL_MS ? undefined : false;
  }
}
