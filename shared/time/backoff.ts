/** How waiting times between tries grow. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Milliseconds to wait after `failures` (1 or more) failed tries in a row: doubles up to the longest, jittered by
 * half so that those who failed together do not come back together.
 */
export function backoffMs(failures: number, backoff: Backoff, random = Math.random()): number {
  const exponentialMs = Math.min(backoff.firstMs * 2 ** (failures - 1), backoff.longestMs);
  return Math.ceil(exponentialMs * (0.5 + random / 2));
}
