import type { NodeRef } from '#shared/eviction/identity.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Has `evict` process a node at a given time, by a due message on the queue `evictions-due`. A timer carries no
 * authority: `evict` reads the records. So changing the record cancels the timer.
 */
export interface Timers {
  /**
   * Arms one timer per distinct time, each never early and normally less than a second late; arming the same again is
   * harmless. Times in the past fire immediately. Rejects with `TimerError` when a timer could not be armed.
   */
  arm(ref: NodeRef, fireAts: readonly EpochMs[]): Promise<void>;
}

/** A timer could not be armed; the message states the reason. */
export class TimerError extends Error {
  override readonly name = 'TimerError';
}

/** Returns the error for a node's timer that could not be armed, because of `cause`. */
export function timerError({ cluster, node }: NodeRef, cause: unknown): TimerError {
  const reason = errorMessage(cause);
  return new TimerError(
    `node ${node} of ${cluster}: a timer could not be armed: ${reason}; the message that asked for it comes again`,
    { cause },
  );
}
