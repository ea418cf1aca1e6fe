import type { Emf } from './emf.ts';
import type { EvictionMetrics } from './eviction-metrics.ts';
import { API_REFUSALS, EVICTION_RETRIES, POD_DELETION_DURATION, POD_DELETIONS } from './metric-names.ts';

/** What `evict` counts, for CloudWatch. */
export function emfEvictionMetrics(emf: Emf): EvictionMetrics {
  return {
    podDeleted(lateSeconds) {
      emf.put(POD_DELETIONS, 'Count', 1);
      emf.put(POD_DELETION_DURATION, 'Seconds', lateSeconds);
    },
    requestRefused: () => emf.put(API_REFUSALS, 'Count', 1),
    retried: () => emf.put(EVICTION_RETRIES, 'Count', 1),
    flush: () => emf.flush(),
  };
}
