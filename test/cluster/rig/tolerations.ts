import type { WatchedToleration } from './watched.ts';

/** Returns a toleration of a NoExecute taint with any value, for a time. */
export const tolerates = (key: string, tolerationSeconds: number): WatchedToleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});

/** Tolerates all taints. */
export const FOREVER: WatchedToleration = { operator: 'Exists' };
