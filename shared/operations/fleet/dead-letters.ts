import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A message that no consumer could handle. */
export interface DeadLetter {
  /** ID within its dead-letter queue. */
  readonly id: string;
  /** Source queue, to which a redrive returns the message. `expiry`: it came from no queue. */
  readonly queue: string;
  /** Time at which it was sent or at which it failed. A box has only one of the two. */
  readonly at: EpochMs;
  /** Reason for the failure, if it was recorded. */
  readonly reason?: string;
  readonly body: string;
}

/** Dead letters of a fleet. Every method rejects with `QueueError` or `StoreError`. */
export interface DeadLetterBox {
  /** By queue, without empty ones. Approximate in a deployment. `undefined`: only another process can count them. */
  count(): Promise<ReadonlyMap<string, number> | undefined>;
  /** Oldest first. In a deployment, other readers can't receive them for some seconds. */
  list(limit: number, queue?: string): Promise<readonly DeadLetter[]>;
  /** Sends all dead letters of a queue to it again. Returns their approximate number. */
  redrive(queue: string): Promise<number>;
}
