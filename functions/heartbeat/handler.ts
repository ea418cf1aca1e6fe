import middy from '@middy/core';
import type { LeaseReader } from '#shared/clusters/lease.ts';
import type { ClusterRegistry } from '#shared/clusters/registry.ts';
import type { Emf } from '#shared/telemetry/emf.ts';
import { invocation } from '#shared/telemetry/invocation.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { UNWATCHED_CLUSTERS } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';

export interface HeartbeatDeps {
  readonly registry: Pick<ClusterRegistry, 'list'>;
  readonly leases: Pick<LeaseReader, 'held'>;
  readonly emf: Emf;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Called every minute: counts the registered clusters that no relay speaks for. Asks the leases and not the relays, so
 * that it does not matter where they run, and that one that is gone altogether is noticed.
 */
export function createHandler({ registry, leases, emf, clock, log }: HeartbeatDeps) {
  return middy<unknown, void>()
    .use(invocation(emf))
    .handler(async () => {
      const clusters = (await registry.list()).map(({ name }) => name);
      const held = await leases.held(clusters, clock.now());
      const unwatched = clusters.filter((cluster) => !held.has(cluster));
      for (const cluster of unwatched) log.warn('cluster.unwatched', { cluster });
      emf.put(UNWATCHED_CLUSTERS, 'Count', unwatched.length);
    });
}
