import { MAX_RETENTION_SECONDS } from './limits.ts';

/** One queue and its dead-letter queue, which is of the same kind. */
export interface QueueSpec {
  readonly name: string;
  readonly fifo: boolean;
  /** Seconds the function that handles the queue's messages may take for a batch. */
  readonly functionTimeoutSeconds: number;
  /** After this many receives a message that comes up again goes to the dead-letter queue. */
  readonly maxReceiveCount: number;
  readonly deadLetterName: string;
}

/**
 * Deltas heal themselves (the next resync sends the node again), so a few tries are enough. Five is also the
 * least AWS recommends for a queue that feeds a function: throttled batches use up receives.
 */
export const DELTA_MAX_RECEIVES = 5;

/**
 * A message of `evict` comes again only while the table or a queue is away, or its moment has not come. Even if its handler
 * dies each time, and it stays hidden for 360 s, this many receives take less time than the queue keeps a message: after them it is
 * dead-lettered, not lost.
 */
export const EVICTIONS_DUE_MAX_RECEIVES = 800;

/** Delta handlers wait for the table only. */
const DELTA_TIMEOUT_SECONDS = 30;

/** `evict` waits for API servers, twice as long as for one answer (`REQUEST_TIMEOUT_MS`). */
const EVICT_TIMEOUT_SECONDS = 60;

/** Every queue, by the name the code uses. */
export const QUEUES = {
  nodeDeltas: fifoQueue('node-deltas', DELTA_TIMEOUT_SECONDS, DELTA_MAX_RECEIVES),
  podDeltas: fifoQueue('pod-deltas', DELTA_TIMEOUT_SECONDS, DELTA_MAX_RECEIVES),
  evictionsDue: standardQueue('evictions-due', EVICT_TIMEOUT_SECONDS, EVICTIONS_DUE_MAX_RECEIVES),
} as const satisfies Record<string, QueueSpec>;

export type QueueKey = keyof typeof QUEUES;

/** Where `expiry`, which is fed by no queue, sets aside what it cannot read or put back. */
export const EXPIRY_DEAD_LETTER_NAME = 'expiry-dlq';

/**
 * How many timeouts of its function a received message stays hidden: what AWS recommends, so that a batch that
 * Lambda cannot run at once is not handled twice. Only a handler that died leaves its messages to that time:
 * one that failed says itself when they are to be seen again.
 */
const VISIBILITY_TIMEOUTS = 6;

/** Seconds until a message whose handler died is seen again. */
export const visibilitySeconds = (spec: QueueSpec): number =>
  VISIBILITY_TIMEOUTS * spec.functionTimeoutSeconds;

/** Seconds for which a queue keeps a message: 4 days. */
export const RETENTION_SECONDS = 345_600;

/** Seconds for which a dead letter is kept. */
export const DEAD_LETTER_RETENTION_SECONDS = MAX_RETENTION_SECONDS;

function fifoQueue(name: string, functionTimeoutSeconds: number, maxReceiveCount: number): QueueSpec {
  const names = { name: `${name}.fifo`, deadLetterName: `${name}-dlq.fifo` };
  return { ...names, fifo: true, functionTimeoutSeconds, maxReceiveCount };
}

function standardQueue(name: string, functionTimeoutSeconds: number, maxReceiveCount: number): QueueSpec {
  const names = { name, deadLetterName: `${name}-dlq` };
  return { ...names, fifo: false, functionTimeoutSeconds, maxReceiveCount };
}
