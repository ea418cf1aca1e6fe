import type { Backoff } from '#shared/time/backoff.ts';

/** The next attempt at a message that is unfinished although nothing failed. Queues may round up to whole seconds. */
export interface Again {
  readonly againInSeconds: number;
}

/** Backoff of work that failed as a whole: the store or a queue is unavailable, briefly or for longer. */
export const WORK_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 300_000 };
