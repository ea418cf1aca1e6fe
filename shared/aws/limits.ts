/*
 * Limits of Amazon SQS. Source: Amazon SQS Developer Guide, "Amazon SQS message quotas" and the API reference.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */

/** Messages in one SendMessageBatch, ReceiveMessage, DeleteMessageBatch or ChangeMessageVisibilityBatch. */
export const MAX_BATCH_MESSAGES = 10;

/** Bytes of one message: its body and its attributes. 1 MiB since August 2025; 256 KiB before. */
export const MAX_MESSAGE_BYTES = 1_048_576;

/** Bytes of all messages of one SendMessageBatch together. */
export const MAX_BATCH_BYTES = 1_048_576;

/** Attributes of one message. */
export const MAX_MESSAGE_ATTRIBUTES = 10;

/** Characters of a message group ID and of a deduplication ID. */
export const MAX_ID_CHARACTERS = 128;

/** Seconds by which a message can be delayed (`DelaySeconds`); per message on standard queues only. */
export const MAX_DELAY_SECONDS = 900;

/** Seconds for which a received message can be hidden (`VisibilityTimeout`): 12 hours. */
export const MAX_VISIBILITY_SECONDS = 43_200;

/** Seconds for which a queue can keep a message (`MessageRetentionPeriod`): 14 days. */
export const MAX_RETENTION_SECONDS = 1_209_600;
