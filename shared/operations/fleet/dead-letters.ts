import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A message that nobody could handle. */
export interface DeadLetter {
  /** Names it in its box. */
  readonly id: string;
  /** The queue it was on, and that it goes back to; `expiry` for what came from no queue. */
  readonly queue: string;
  /** When it was sent, or given up; the box says only one of them. */
  readonly at: EpochMs;
  /** Why, where somebody said it. */
  readonly reason?: string;
  readonly body: string;
}

/** The dead letters of a fleet. Every method rejects with `QueueError` or `StoreError`. */
export interface DeadLetterBox {
  /** How many there are of each queue that has some, by its name. Approximate in a deployment. `undefined`: only another process knows. */
  count(): Promise<ReadonlyMap<string, number> | undefined>;
  /** Some of them, the oldest first, of one queue or all: at most `limit`. In a deployment they are unseen by others for some seconds. */
  list(limit: number, queue?: string): Promise<readonly DeadLetter[]>;
  /** Has all of a queue sent to it again, and tells how many those were, about. */
  redrive(queue: string): Promise<number>;
  /** Sends one of them to its queue again. */
  redriveOne(letter: Pick<DeadLetter, 'id' | 'queue'>): Promise<void>;
  /** Deletes all of a queue, and those that come meanwhile; tells how many. */
  purge(queue: string): Promise<number>;
  /** Deletes one of them. */
  purgeOne(letter: Pick<DeadLetter, 'id' | 'queue'>): Promise<void>;
}
