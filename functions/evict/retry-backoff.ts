/** The first retry's delay; each later one doubles it. */
const FIRST_RETRY_SECONDS = 1;
/**
 * The longest delay between two tries: with `evictions-due`'s 1,000 receives they span the 4 days for which the
 * queue keeps a message. A cluster that comes back does not wait for it: its relay sends its nodes anew.
 */
export const MAX_RETRY_SECONDS = 300;

/**
 * Whole seconds until the next try after `receives` tries, jittered by half so that the nodes of a cluster that
 * was unreachable do not come back in step. What the API server asked for (`Retry-After`) is the least.
 */
export function retryDelaySeconds(
  receives: number,
  retryAfterSeconds: number | undefined,
  random = Math.random(),
): number {
  const exponential = Math.min(FIRST_RETRY_SECONDS * 2 ** (receives - 1), MAX_RETRY_SECONDS);
  const jittered = Math.ceil(exponential * (0.5 + random / 2));
  return Math.min(Math.max(jittered, retryAfterSeconds ?? 0), MAX_RETRY_SECONDS);
}
