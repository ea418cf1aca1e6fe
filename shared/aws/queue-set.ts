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
 * The next resync repairs a lost delta, so few are enough. Five is AWS's minimum for a queue that feeds a function,
 * because throttled batches use up receives.
 */
export const DELTA_MAX_RECEIVES = 5;

/**
 * If the handler dies each time, and the message stays hidden for 360 s, this many receives still take less than the
 * queue's retention: the message becomes a dead letter, and is not lost. Otherwise, redelivery needs an unavailable
 * table or queue, or comes before the deadline.
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
 * Visibility timeout in function timeouts, as AWS recommends, so that a delayed batch is not handled twice. Only
 * messages of a handler that died wait this long: a failed one sets the time of the retry itself.
 */
const VISIBILITY_TIMEOUTS = 6;

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
