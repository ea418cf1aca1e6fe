import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  EVICTION_RETRIES,
  type EvictionMetrics,
  GIVEN_UP,
  MESSAGES_FAILING,
  OUT_OF_REACH,
  POD_DELETION_DURATION,
  POD_DELETIONS,
  RIVALS,
} from '#shared/telemetry/metrics.ts';
import type { ServiceStore } from './service-state.ts';

/** Bucket bounds in seconds, as upstream's. */
const DURATION_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240];

/**
 * The built-in controller's metrics under their own names, so that dashboards keep working. Its histogram is
 * a factor of 1e9 off (every value lands in +Inf); ours holds seconds, as its name says.
 */
export function prometheusEvictionMetrics(registry: Registry): EvictionMetrics {
  const registers = [registry];
  const deletions = new Counter({
    name: POD_DELETIONS,
    help: 'Total number of Pods deleted by TaintEvictionController since its start.',
    registers,
  });
  const durations = new Histogram({
    name: POD_DELETION_DURATION,
    help: 'Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion via TaintEvictionController.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const refusals = new Counter({
    name: API_REFUSALS,
    help: 'Requests for an eviction that an API server refused or did not answer.',
    registers,
  });
  const outOfReach = new Counter({
    name: OUT_OF_REACH,
    help: 'Looks at a node after which its API server counts as out of reach: it did not answer several calls in a row.',
    registers,
  });
  const retries = new Counter({
    name: EVICTION_RETRIES,
    help: 'Looks at a node that failed and are tried again.',
    registers,
  });
  const givenUp = new Counter({
    name: GIVEN_UP,
    help: 'Evictions that ended without their pods going.',
    registers,
  });
  const rivals = new Counter({
    name: RIVALS,
    help: 'Other installations that were seen to evict in a cluster of this one.',
    registers,
  });
  const failing = new Counter({
    name: MESSAGES_FAILING,
    help: 'Failed attempts to handle a message of what is due, from its third receive on.',
    registers,
  });
  const skew = new Gauge({
    name: CLOCK_SKEW,
    help: 'Seconds by which the API server that was asked last and this process differ in time.',
    registers,
  });
  return {
    podDeleted(_cluster, lateSeconds) {
      deletions.inc();
      durations.observe(lateSeconds);
    },
    requestRefused: () => refusals.inc(),
    outOfReach: () => outOfReach.inc(),
    retried: () => retries.inc(),
    gaveUp: (_cluster, evictions) => givenUp.inc(evictions),
    rivalSeen: () => rivals.inc(),
    messageFailing: () => failing.inc(),
    clockSkewed: (_cluster, seconds) => skew.set(seconds),
  };
}

/** By cluster; known where the store is at hand, and so in one process only. */
const EVICTIONS = 'taintward_evictions';

/** What the metric calls each standing. */
const STANDINGS = { pending: 'pending', 'gave-up': 'gave-up', observe: 'would-have' } as const;

/**
 * How many evictions each cluster has that wait, are held, would have gone, or were given up: counted when it is
 * asked for. One that had some goes on with 0.
 */
export function standingMetrics(registry: Registry, store: Pick<ServiceStore, 'standings'>): void {
  const clusters = new Set<string>();
  new Gauge({
    name: EVICTIONS,
    help: 'Scheduled evictions by cluster: pending, held, would-have (due in a cluster that is only observed) or gave-up.',
    labelNames: ['cluster', 'standing'],
    registers: [registry],
    collect() {
      const counts = store.standings();
      for (const { cluster } of counts) clusters.add(cluster);
      for (const cluster of clusters) {
        for (const standing of [...Object.values(STANDINGS), 'held']) this.set({ cluster, standing }, 0);
      }
      for (const { cluster, standing, evictions } of counts) {
        const told = standing in STANDINGS ? STANDINGS[standing as keyof typeof STANDINGS] : 'held';
        this.inc({ cluster, standing: told }, evictions);
      }
    },
  });
}
