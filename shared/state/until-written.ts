import { type Backoff, untilSuccessful } from '#shared/time/backoff.ts';
import { StoreError } from './store.ts';

/** With this many attempts, a writer fails only after as many others succeeded: each conflict is another's write. */
const MAX_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

/** Repeats a write while other clients are faster (`undefined`). `conflict`: the `StoreError`'s message in the end. */
export async function untilWritten<T>(
  write: (tries: number) => Promise<{ readonly result: T } | undefined>,
  conflict: (tries: number) => string,
): Promise<T> {
  const exhausted = () => new StoreError(conflict(MAX_TRIES));
  return untilSuccessful(write, { attempts: MAX_TRIES, backoff: BACKOFF, exhausted });
}
