import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ServiceStore } from '#shared/state/service-state.ts';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  EVICTION_RETRIES,
  type EvictionMetric,
  type EvictionMetrics,
  GIVEN_UP,
  MESSAGES_FAILING,
  OUT_OF_REACH,
  POD_DELETION_DURATION,
  POD_DELETIONS,
  RIVALS,
} from '#shared/telemetry/metrics.ts';

/** Bucket bounds in seconds, as in upstream. */
const DURATION_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240];

/**
 * The built-in controller's metrics under their own names. The upstream histogram is off by a factor of 1e9 (every
 * value is in +Inf); ours holds seconds, as its name states.
 */
export function prometheusEvictionMetrics(registry: Registry): EvictionMetrics {
  const registers = [registry];
  const counter = (name: EvictionMetric, help: string) => {
    const total = new Counter({ name, help, registers });
    return (count: number) => total.inc(count);
  };
  const deletions = counter(
    POD_DELETIONS,
    'Total number of Pods deleted by TaintEvictionController since its start.',
  );
  const durations = new Histogram({
    name: POD_DELETION_DURATION,
    help: 'Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion via TaintEvictionController.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const puts: { readonly [Name in EvictionMetric]: (value: number) => void } = {
    [POD_DELETIONS]: deletions,
    [POD_DELETION_DURATION]: (seconds) => durations.observe(seconds),
    [API_REFUSALS]: counter(
      API_REFUSALS,
      'Requests of an eviction that an API server rejected or did not answer.',
    ),
    [OUT_OF_REACH]: counter(
      OUT_OF_REACH,
      'Evaluations of a node after which its API server counts as unreachable, because several calls in a row got no answer.',
    ),
    [EVICTION_RETRIES]: counter(EVICTION_RETRIES, 'Failed evaluations of a node. They are retried.'),
    [GIVEN_UP]: counter(GIVEN_UP, 'Evictions that failed, with all retries exhausted.'),
    [RIVALS]: counter(RIVALS, 'Other installations that were observed evicting in a cluster of this one.'),
    [MESSAGES_FAILING]: counter(
      MESSAGES_FAILING,
      'Failed attempts to process a message of due evictions, from its third receive on.',
    ),
    [CLOCK_SKEW]: (seconds) => skew.set(seconds),
  };
  const skew = new Gauge({
    name: CLOCK_SKEW,
    help: 'Clock skew between this process and the API server that answered last, in seconds.',
    registers,
  });
  return { put: (name, value) => puts[name](value) };
}

/** The metric needs the store in the same process, so it exists only in the service with one process. */
const EVICTIONS = 'taintward_evictions';

const STATES = { pending: 'pending', failed: 'failed', observe: 'would-evict' } as const;

/** Counts evictions by state at each scrape. A cluster that no longer has any continues with 0. */
export function stateMetrics(registry: Registry, store: Pick<ServiceStore, 'states'>): void {
  const clusters = new Set<string>();
  new Gauge({
    name: EVICTIONS,
    help: 'Scheduled evictions by cluster and state: pending, held, would-evict (due in observe mode), or failed.',
    labelNames: ['cluster', 'state'],
    registers: [registry],
    collect() {
      const counts = store.states();
      for (const { cluster } of counts) clusters.add(cluster);
      for (const cluster of clusters) {
        for (const state of [...Object.values(STATES), 'held']) this.set({ cluster, state }, 0);
      }
      for (const { cluster, state: stored, evictions } of counts) {
        const state = stored in STATES ? STATES[stored as keyof typeof STATES] : 'held';
        this.inc({ cluster, state }, evictions);
      }
    },
  });
}
