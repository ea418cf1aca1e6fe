import { Counter, Histogram, type Registry } from 'prom-client';
import { API_REFUSALS, EVICTION_RETRIES, POD_DELETION_DURATION, POD_DELETIONS } from './metric-names.ts';

/** What `evict` counts. */
export interface EvictionMetrics {
  /** A pod was deleted, `lateSeconds` after it fell due. */
  podDeleted(lateSeconds: number): void;
  /** An API server refused a request, or did not answer it. */
  requestRefused(): void;
  /** A message's work failed and is tried again. */
  retried(): void;
  /** Writes what was counted, where that does not happen by itself. */
  flush?(): void;
}

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
  const retries = new Counter({
    name: EVICTION_RETRIES,
    help: 'Messages of evictions-due whose work failed and was tried again.',
    registers,
  });
  return {
    podDeleted(lateSeconds) {
      deletions.inc();
      durations.observe(lateSeconds);
    },
    requestRefused: () => refusals.inc(),
    retried: () => retries.inc(),
  };
}
