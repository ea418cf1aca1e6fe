import { pause } from './pause.ts';

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

/** Limits of {@link untilSuccessful}. */
export interface Attempts {
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly exhausted: () => Error;
}

/**
 * Repeats an attempt that other writers can make fail (`undefined`), after growing delays, and resolves with its result.
 * Rejects as the attempt does, and with the error of `exhausted` after too many attempts.
 */
export async function untilSuccessful<Result>(
  attempt: (nth: number) => Promise<{ readonly result: Result } | undefined>,
  { attempts, backoff, exhausted }: Attempts,
): Promise<Result> {
  for (let nth = 1; nth <= attempts; nth++) {
    const success = await attempt(nth);
    if (success) return success.result;
    await pause(backoffMs(nth, backoff));
  }
  throw exhausted();
}
