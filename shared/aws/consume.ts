import middy, { type MiddlewareObj } from '@middy/core';
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { defined } from '#shared/defined.ts';
import type { Again } from '#shared/engine/timers.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { enterLogContext, inLogContext, type Log } from '#shared/telemetry/log.ts';
import { MESSAGES_FAILING, type MetricSink } from '#shared/telemetry/metrics.ts';
import { durationText } from '#shared/time/duration.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { RejectedMessageError } from './rejected-message.ts';
import type { VisibilityControl } from './sqs-visibility.ts';

/** A message as a queue delivered it. */
export interface ReceivedMessage {
  readonly messageId: string;
  /** Identifies this delivery to the queue. */
  readonly receiptHandle: string;
  readonly body: string;
  /** How often the message was received, including this time. */
  readonly receives: number;
  /** The sender of the message. AWS identifies users and roles by their unique IDs. */
  readonly senderId: string;
  readonly groupId: string | undefined;
}

/** How a process handles one queue's messages. */
export interface Consumption<Message> {
  /** Parses a message's body. Throws `RejectedMessageError` for an unreadable message. */
  readonly parse: (body: string) => Message;
  /** Rejects with `RejectedMessageError` if sender or group do not allow processing. Absent: all are admitted. */
  readonly admit?: (message: Message, received: ReceivedMessage) => Promise<void>;
  /**
   * Processes a message and those that joined it (`behind`, in order): all or, when it rejects, none. Resolves with the
   * next attempt, if one is needed. Rejects with `RejectedMessageError` for what must not be processed.
   */
  readonly perform: (
    message: Message,
    received: ReceivedMessage,
    behind: readonly Message[],
  ) => Promise<Again | undefined>;
  /**
   * Reports whether a FIFO queue's message is processed with those right before it in its group. Only on first receipt:
   * messages that failed together are retried separately, so that one that always fails blocks no other. Absent: the
   * queue is a standard queue.
   */
  readonly joins?: (before: readonly Message[], next: Message) => boolean;
  /** Less than the timeout of a whole batch, so that a slow message does not fail the others. */
  readonly deadlineMs: number;
  /** Whole seconds until a failed message is received again. */
  readonly retrySeconds: (receives: number) => number;
  /** For the log: the node of a message, and the delta in it, if there is one. */
  readonly about: (message: Message) => NodeRef & { readonly delta?: string };
}

export interface MessageDeps {
  /** The queue for messages that are unreadable or were rejected. */
  readonly deadLetters: QueueSender;
  readonly visibility: VisibilityControl;
  readonly metrics?: MetricSink<typeof MESSAGES_FAILING>;
  readonly log: Log;
}

/** What is done at the start and at the end of each invocation of a Lambda function. */
export interface InvocationDeps {
  /** Data that was read earlier is unreliable when an invocation begins. Absent: nothing is kept between invocations. */
  readonly invoked?: (() => void) | undefined;
  /** Flushed at the end of each invocation. */
  readonly metrics?: { flush?(): void };
  /** Flushed at the end of each invocation. Absent or `undefined`: nothing receives notices. */
  readonly notices?: { flush(): Promise<void> } | undefined;
}

export type ConsumerDeps = MessageDeps & InvocationDeps;

/** Makes the Lambda handler of an SQS queue. It reports the messages to redeliver, and never throws for one. */
export function consume<Message>(
  consumption: Consumption<Message>,
  deps: ConsumerDeps,
): (event: SQSEvent, context: Context) => Promise<SQSBatchResponse> {
  const consumer = { ...deps, ...consumption };
  return middy<SQSEvent, SQSBatchResponse>()
    .use(invocation(deps))
    .handler(async ({ Records }) => {
      const returned = await processBatch(Records.map(receivedOf), consumer);
      return { batchItemFailures: returned.map(({ messageId }) => ({ itemIdentifier: messageId })) };
    });
}

/** Begins and ends each invocation, whether it succeeds or fails. Its log lines have the ID of its request. */
export function invocation({ invoked, metrics, notices }: InvocationDeps): MiddlewareObj {
  const flush = () => {
    metrics?.flush?.();
    return notices?.flush();
  };
  return {
    before({ context }) {
      enterLogContext({ requestId: context.awsRequestId });
      invoked?.();
    },
    after: flush,
    onError: flush,
  };
}

const receivedOf = ({ messageId, receiptHandle, body, attributes }: SQSRecord): ReceivedMessage => ({
  messageId,
  receiptHandle,
  body,
  receives: Number(attributes.ApproximateReceiveCount),
  senderId: attributes.SenderId,
  groupId: attributes.MessageGroupId,
});

export type Consumer<Message> = Consumption<Message> & MessageDeps;

type Parsed<Message> = ReceivedMessage & ({ readonly content: Message } | { readonly fault: unknown });

/**
 * Processes the messages of a FIFO group in order, and all others concurrently. Resolves with those that return to the
 * queue, after setting when they are visible again. The caller deletes the others.
 */
export async function processBatch<Message>(
  messages: readonly ReceivedMessage[],
  consumer: Consumer<Message>,
): Promise<readonly ReceivedMessage[]> {
  const { parse, joins, visibility } = consumer;
  const parsed = messages.map((received): Parsed<Message> => {
    try {
      return { ...received, content: parse(received.body) };
    } catch (fault) {
      return { ...received, fault };
    }
  });
  const groups = Map.groupBy(parsed, ({ groupId, messageId }) => (joins ? groupId : messageId));
  const outcomes = await Promise.all([...groups.values()].map((group) => processInOrder(group, consumer)));
  const returned = outcomes.flat();
  const retries = returned.map(({ receiptHandle, againInSeconds: seconds }) => ({ receiptHandle, seconds }));
  if (retries.length > 0) await visibility.retryIn(retries);
  return returned;
}

/** Resolves with the messages that return to the queue: the first that is not done, and all behind it. */
async function processInOrder<Message>(
  messages: readonly Parsed<Message>[],
  consumer: Consumer<Message>,
): Promise<readonly (ReceivedMessage & Again)[]> {
  const [first, ...behind] = messages;
  if (!first) return [];
  const outcome = await inLogContext({ messageId: first.messageId }, () => attempt(first, behind, consumer));
  if (typeof outcome === 'number') return processInOrder(messages.slice(outcome), consumer);
  const waiting = behind.map((each) => ({ ...each, againInSeconds: consumer.retrySeconds(each.receives) }));
  return [{ ...first, ...outcome }, ...waiting];
}

/**
 * From this many receives on, a message no longer counts in the age of a standard queue's oldest message (Amazon SQS
 * Developer Guide, `ApproximateAgeOfOldestMessage`), so its failures are counted here.
 */
export const OUT_OF_SIGHT_RECEIVES = 3;

/**
 * Resolves with the number of messages that are done, from the first on, or with the next attempt. An unreadable or
 * rejected message is done when it is a dead letter: retried up to SQS's limit, it would block its group.
 */
async function attempt<Message>(
  message: Parsed<Message>,
  behind: readonly Parsed<Message>[],
  consumer: Consumer<Message>,
): Promise<number | Again> {
  const { receives } = message;
  const { about, retrySeconds, metrics, log } = consumer;
  try {
    return await perform(message, behind, consumer);
  } catch (error) {
    if (error instanceof RejectedMessageError) {
      if (await setAside(message, error, consumer)) return 1;
    } else if ('content' in message)
      log.warn('message.retrying', { ...about(message.content), receiveCount: receives, error });
    if (receives >= OUT_OF_SIGHT_RECEIVES) metrics?.put(MESSAGES_FAILING, 1);
    return { againInSeconds: retrySeconds(receives) };
  }
}

/** Performs a message together with those behind it that join. If it takes too long, its work continues. */
async function perform<Message>(
  message: Parsed<Message>,
  behind: readonly Parsed<Message>[],
  consumer: Consumer<Message>,
): Promise<number | Again> {
  if ('fault' in message) throw message.fault;
  const { content } = message;
  const { admit, about, deadlineMs } = consumer;
  const work = async () => {
    await admit?.(content, message);
    const joined = message.receives > 1 ? [] : await joining(content, behind, consumer);
    return (await consumer.perform(content, message, joined)) ?? 1 + joined.length;
  };
  const { delta } = about(content);
  // The relay's log has the same delta ID.
  const working = delta === undefined ? work() : inLogContext({ delta }, work);
  if (await endsWithin(deadlineMs, working)) return working;
  throw new Error(`not done within ${durationText(deadlineMs)}; the queue brings the message back`);
}

async function joining<Message>(
  first: Message,
  behind: readonly Parsed<Message>[],
  { joins, admit }: Consumer<Message>,
): Promise<readonly Message[]> {
  const joined: Message[] = [];
  for (const message of behind) {
    // An invalid message is reported in its own turn.
    if (message.receives > 1 || 'fault' in message) break;
    if (!joins?.([first, ...joined], message.content)) break;
    try {
      await admit?.(message.content, message);
    } catch {
      break;
    }
    joined.push(message.content);
  }
  return joined;
}

/** Moves a message to the dead-letter queue, with the reason. Reports whether that queue accepted it. */
async function setAside(
  { messageId, body, groupId }: ReceivedMessage,
  reason: RejectedMessageError,
  { deadLetters, joins, log }: Pick<Consumer<never>, 'deadLetters' | 'joins' | 'log'>,
): Promise<boolean> {
  const ids = defined({ groupId, deduplicationId: joins && messageId });
  try {
    const [failure] = await deadLetters.send([{ body, ...ids, attributes: { reason: reason.message } }]);
    if (failure) throw new Error(`the dead-letter queue rejected it: ${failure.reason}`);
  } catch (error) {
    log.error('message.dead-letter-failed', { messageId, error });
    return false;
  }
  log.error('message.rejected', { messageId, error: reason });
  return true;
}
