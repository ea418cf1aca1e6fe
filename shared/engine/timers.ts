import type { NodeRef } from '#shared/eviction/identity.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Says "look at this node at that time" to `evict`, by a due message on the queue `evictions-due`. A timer
 * carries no authority: `evict` reads the records. Cancelling is therefore changing the record.
 */
export interface Timers {
  /**
   * Arms one timer per distinct moment, each never early and normally less than a second late; arming the same
   * again is harmless. Moments in the past fire at once. Rejects with `TimerError` when one could not be armed.
   */
  arm(ref: NodeRef, fireAts: readonly EpochMs[]): Promise<void>;
}

/** A timer could not be armed; the message says why. */
export class TimerError extends Error {
  override readonly name = 'TimerError';
}

/** That a node's timer could not be armed, because of `cause`. */
export function timerError({ cluster, node }: NodeRef, cause: unknown): TimerError {
  const reason = errorMessage(cause);
  return new TimerError(
    `node ${node} of ${cluster}: a timer could not be armed: ${reason}; the message that asked for it comes again`,
    { cause },
  );
}
