import type { WatchedToleration } from './watched.ts';

/** Tolerates a NoExecute taint, whatever its value, for a time. */
export const tolerates = (key: string, tolerationSeconds: number): WatchedToleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});

/** Tolerates everything. */
export const FOREVER: WatchedToleration = { operator: 'Exists' };
