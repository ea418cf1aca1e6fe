import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';

/** Metrics of evictions that are not counted. */
export const NO_METRICS: EvictionMetrics = { put: () => undefined };
