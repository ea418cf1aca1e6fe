export interface OutgoingMessage {
  readonly body: string;
  /**
   * On a FIFO queue, messages of one group stay in order. On a standard queue, a group with many messages in flight
   * does not delay the others (fair queues). At most 128 characters.
   */
  readonly groupId?: string;
  /**
   * Required on FIFO queues, and only there. The queue drops a message whose ID it already received. At most 128
   * characters.
   */
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
  /** True: the message itself is invalid, and another attempt cannot succeed. */
  readonly permanent: boolean;
}

/** One queue, from the sender's side. */
export interface QueueSender {
  /**
   * Sends any number of messages in order, in as few calls as SQS's limits allow (10 messages and 1 MiB a call).
   * Returns the messages that were not accepted. After a failed message of a FIFO queue's group, the rest of the
   * group is not sent and counts as failed too. Rejects with `QueueError` when the queue is unreachable from the
   * first call on.
   */
  send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]>;
}

/** The queue is unreachable. The message names the queue and the fix. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}
