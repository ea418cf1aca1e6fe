export interface OutgoingMessage {
  readonly body: string;
  /**
   * FIFO: messages of a group stay in order. Standard: a busy group delays no other (fair queues). At most 128
   * characters.
   */
  readonly groupId?: string;
  /** On FIFO queues only, and required there: a repeated ID is dropped. At most 128 characters. */
  readonly deduplicationId?: string;
  /** Standard queues only: whole seconds, 0 to 900. */
  readonly delaySeconds?: number;
  /** String attributes, for the reader of a dead letter. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** A message of a batch that the queue did not accept. */
export interface SendFailure {
  readonly index: number;
  readonly reason: string;
  readonly permanent: boolean;
}

/** One queue, from the sender's side. */
export interface QueueSender {
  /**
   * Sends messages in order, in as few calls as SQS's limits allow (10 messages and 1 MiB a call). Returns the failed
   * ones: on FIFO queues, also the rest of their group. Rejects with `QueueError` if the first call can't reach the
   * queue.
   */
  send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]>;
}

/** The queue is unreachable. The message names the queue and the fix. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}
