import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { StoreError } from './store.ts';

/** With this many attempts, a writer fails only after as many others succeeded: each conflict is another's write. */
const MAX_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

/**
 * Repeats a write while other clients are faster (`undefined`), and resolves with its result. `conflict`: returns the
 * message of the `StoreError` after too many attempts.
 */
export async function untilWritten<T>(
  write: (tries: number) => Promise<T | undefined>,
  conflict: (tries: number) => string,
): Promise<T> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const written = await write(tries);
    if (written !== undefined) return written;
    await pause(backoffMs(tries, BACKOFF));
  }
  throw new StoreError(conflict(MAX_TRIES));
}
