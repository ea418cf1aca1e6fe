import type { NodeRef } from '#shared/eviction/identity.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Has `evict` process a node at a time, by a due message. A timer carries no authority: changing the record cancels it.
 */
export interface Timers {
  /**
   * Arms one timer per time, never early, normally less than a second late; again is harmless. Times in the past fire
   * immediately. Rejects with `TimerError`.
   */
  arm(ref: NodeRef, times: readonly EpochMs[]): Promise<void>;
}

export class TimerError extends Error {
  override readonly name = 'TimerError';
}

export function timerError({ cluster, node }: NodeRef, cause: unknown): TimerError {
  const reason = errorMessage(cause);
  return new TimerError(
    `node ${node} of ${cluster}: a timer could not be armed: ${reason}; the message that asked for it comes again`,
    { cause },
  );
}

/** The next attempt at a message that is unfinished although nothing failed. Queues may round up to whole seconds. */
export interface Again {
  readonly againInSeconds: number;
}

/** Backoff of work that failed as a whole: the store or a queue is unavailable, briefly or for longer. */
export const WORK_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 300_000 };
