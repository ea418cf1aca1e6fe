import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';

/** Evictions of which nobody counts anything. */
export const NO_METRICS: EvictionMetrics = {
  podDeleted: () => undefined,
  requestRefused: () => undefined,
  outOfReach: () => undefined,
  retried: () => undefined,
  gaveUp: () => undefined,
  rivalSeen: () => undefined,
  clockSkewed: () => undefined,
  messageFailing: () => undefined,
};
