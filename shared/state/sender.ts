/** One message to send. */
export interface OutgoingMessage {
  readonly body: string;
  /**
   * On a FIFO queue, messages of one group stay in order; on a standard queue, no group with many in flight keeps the
   * others waiting (fair queues). At most 128 characters.
   */
  readonly groupId?: string;
  /** FIFO queues only, and always there: what it knows already is not queued again. At most 128 characters. */
  readonly deduplicationId?: string;
  /** Standard queues only: whole seconds, 0 to 900. */
  readonly delaySeconds?: number;
  /** String attributes, for the reader of a dead letter. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** A message of a batch that the queue did not take. */
export interface SendFailure {
  readonly index: number;
  readonly reason: string;
  /** True: the message itself is at fault; sending it again cannot succeed. */
  readonly permanent: boolean;
}

/** One queue, as those who write to it see it. */
export interface QueueSender {
  /**
   * Sends any number of messages in order, in as few calls as SQS's limits allow (10 messages and 1 MiB a call).
   * Returns those that were not taken; behind a failed message of a FIFO queue's group, the
   * rest of that group is not sent and counts as failed too. Rejects with `QueueError` when the queue cannot be reached at all.
   */
  send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]>;
}

/** The queue could not be reached; the message says which and what to do. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}
