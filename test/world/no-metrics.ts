import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';

/** Metrics of evictions that are not counted. */
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
