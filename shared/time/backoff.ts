/** Growth of the delays between attempts. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Returns the milliseconds to wait after `failures` (1 or more) consecutive failures. The delay doubles up to the
 * longest, jittered by half so that processes that failed together don't retry together.
 */
export function backoffMs(failures: number, backoff: Backoff, random = Math.random()): number {
  const exponentialMs = Math.min(backoff.firstMs * 2 ** (failures - 1), backoff.longestMs);
  return Math.ceil(exponentialMs * (0.5 + random / 2));
}
