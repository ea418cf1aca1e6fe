import { MAX_RETENTION_SECONDS } from './limits.ts';

/** One queue and its dead-letter queue, which is of the same type. */
export interface QueueSpec {
  readonly name: string;
  readonly fifo: boolean;
  /** Seconds that the queue's function may take for a batch. */
  readonly functionTimeoutSeconds: number;
  /** After this many receives, SQS moves a message to the dead-letter queue. */
  readonly maxReceiveCount: number;
  readonly deadLetterName: string;
}

/**
 * A lost delta is repaired by the next resync, which sends the node again, so a few attempts are enough. Five is also
 * the minimum that AWS recommends for a queue that feeds a function, because throttled batches use up receives.
 */
export const DELTA_MAX_RECEIVES = 5;

/**
 * SQS redelivers a message of `evict` only while the table or a queue is unavailable, or before its deadline. Suppose
 * that its handler dies each time, and the message stays hidden for 360 s. This many receives still take less time
 * than the queue's retention. The message then moves to the dead-letter queue and is not lost.
 */
export const EVICTIONS_DUE_MAX_RECEIVES = 800;

/** Delta handlers wait only for the table. */
const DELTA_TIMEOUT_SECONDS = 30;

/** `evict` waits for API servers: twice the time limit of one request (`REQUEST_TIMEOUT_MS`). */
const EVICT_TIMEOUT_SECONDS = 60;

/** Every queue, by its name in the code. */
export const QUEUES = {
  nodeDeltas: fifoQueue('node-deltas', DELTA_TIMEOUT_SECONDS, DELTA_MAX_RECEIVES),
  podDeltas: fifoQueue('pod-deltas', DELTA_TIMEOUT_SECONDS, DELTA_MAX_RECEIVES),
  evictionsDue: standardQueue('evictions-due', EVICT_TIMEOUT_SECONDS, EVICTIONS_DUE_MAX_RECEIVES),
} as const satisfies Record<string, QueueSpec>;

export type QueueKey = keyof typeof QUEUES;

/** The queue for stream records that `expiry` cannot read or restore. No queue feeds `expiry`. */
export const EXPIRY_DEAD_LETTER_NAME = 'expiry-dlq';

/**
 * Visibility timeout of a queue, in timeouts of its function. AWS recommends this factor, so that a batch that Lambda
 * cannot run immediately is not handled twice. Only messages of a handler that died wait this long: a failed handler
 * sets the time of the retry itself.
 */
const VISIBILITY_TIMEOUTS = 6;

/** Returns the seconds until a message whose handler died is visible again. */
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
