import { defined } from '#shared/defined.ts';
import type { Again } from '#shared/engine/again.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { inLogContext, type Log } from '#shared/telemetry/log.ts';
import { RejectedMessageError } from './rejected-message.ts';
import type { VisibilityControl } from './sqs-visibility.ts';

/** How a process handles one queue's messages. */
export interface Consumption<Message> {
  /** Parses a message's body. Throws `MalformedMessageError` for an unreadable message. */
  readonly parse: (body: string) => Message;
  /** Rejects with `RejectedMessageError` if sender or group do not allow processing. Absent: all are admitted. */
  readonly admit?: (message: Message, delivery: Delivery) => Promise<void>;
  /**
   * Processes a message and those that joined it (`behind`, in order): all or, when it rejects, none. Resolves with the
   * next attempt, if one is needed. Rejects with `RejectedMessageError` for what must not be processed.
   */
  readonly perform: (
    message: Message,
    delivery: Delivery,
    behind: readonly Message[],
  ) => Promise<Again | undefined>;
  /** `group`: in order within a group, whose rest returns after a failure. `none`: all concurrently. */
  readonly order: 'group' | 'none';
  /**
   * Reports whether a message is processed with those right before it in its group. Only on first receipt: messages
   * that failed together are retried separately, so that one that always fails blocks no other. Absent: never.
   */
  readonly joins?: (before: readonly Message[], next: Message) => boolean;
  /** Less than the timeout of a whole batch, so that a slow message does not fail the others. */
  readonly deadlineMs: number;
  /** Whole seconds until a failed message is received again. `undefined`: the queue's visibility timeout applies. */
  readonly retrySeconds: (receives: number, error: unknown) => number | undefined;
  /** For the log: the node of a message, and the delta in it, if there is one. */
  readonly about: (message: Message) => NodeRef & { readonly delta?: string };
}

/** The attributes with which a queue delivered a message. */
export interface Delivery {
  /** How often the message was received, including this time. */
  readonly receives: number;
  /** The sender of the message. AWS identifies users and roles by their unique IDs. */
  readonly senderId: string;
  readonly groupId: string | undefined;
  /** The text of the message, for code that forwards it. */
  readonly body: string;
}

export interface ReceivedMessage {
  readonly messageId: string;
  /** Identifies this delivery to the queue. */
  readonly receiptHandle: string;
  readonly delivery: Delivery;
}

/** A received message with its content, or with the error that parsing threw. */
export type ParsedMessage<Message> = ReceivedMessage &
  ({ readonly content: Message } | { readonly fault: unknown });

export interface Unfinished {
  /** Seconds until it is received again. `undefined`: the queue's visibility timeout applies. */
  readonly againInSeconds: number | undefined;
}

/** `joined`: the IDs of the messages that were done together with it. */
export type Outcome = { readonly joined: readonly string[] } | Unfinished;

export const isUnfinished = (outcome: Outcome): outcome is Unfinished => 'againInSeconds' in outcome;

export type Returned = Pick<ReceivedMessage, 'messageId' | 'receiptHandle'> & Unfinished;

/** Processes the messages of a batch concurrently. Resolves with those that are done, and with those that return to the queue. */
export async function processConcurrently<Message extends ReceivedMessage>(
  messages: readonly Message[],
  process: (message: Message) => Promise<Outcome>,
): Promise<{ readonly done: readonly Message[]; readonly returned: readonly Returned[] }> {
  const outcomes = await Promise.all(
    messages.map(async (message) => ({ message, outcome: await process(message) })),
  );
  return {
    done: outcomes.filter(({ outcome }) => !isUnfinished(outcome)).map(({ message }) => message),
    returned: outcomes.flatMap(({ message, outcome }) =>
      isUnfinished(outcome) ? [{ ...message, ...outcome }] : [],
    ),
  };
}

/** Sets when the returned messages are visible again, where that differs from the queue's visibility timeout. Never rejects. */
export async function returnToQueue(
  returned: readonly Returned[],
  visibility: VisibilityControl,
): Promise<void> {
  const retries = returned.flatMap(({ receiptHandle, againInSeconds: seconds }) =>
    seconds === undefined ? [] : [{ receiptHandle, seconds }],
  );
  if (retries.length > 0) await visibility.retryIn(retries);
}

export interface MessageDeps {
  /** The queue for messages that are unreadable or were rejected. */
  readonly deadLetters: QueueSender;
  readonly metrics?: { messageFailing?(): void };
  readonly log: Log;
}

/**
 * From this many receives on, a message no longer counts in the age of a standard queue's oldest message (Amazon SQS
 * Developer Guide, `ApproximateAgeOfOldestMessage`), so its failures are counted here.
 */
export const OUT_OF_SIGHT_RECEIVES = 3;

/** The error of a message that takes too long and returns to its queue. */
export class MessageDeadlineError extends Error {
  override readonly name = 'MessageDeadlineError';
}

export function parseReceived<Message>(
  received: ReceivedMessage,
  parse: Consumption<Message>['parse'],
): ParsedMessage<Message> {
  try {
    return { ...received, content: parse(received.delivery.body) };
  } catch (fault) {
    return { ...received, fault };
  }
}

/**
 * Processes one message within its deadline, with those `behind` it that join. An unreadable or rejected one moves to
 * the dead-letter queue immediately, with the reason: retried up to SQS's limit, it would block a FIFO group. Never
 * rejects for a failed message: the outcome says when it returns.
 */
export function messageProcessor<Message>(
  { admit, perform, order, joins, deadlineMs, retrySeconds, about }: Omit<Consumption<Message>, 'parse'>,
  { deadLetters, metrics, log }: MessageDeps,
) {
  const joining = async (first: Message, behind: readonly ParsedMessage<Message>[]) => {
    const joined: { readonly messageId: string; readonly content: Message }[] = [];
    for (const message of behind) {
      // An invalid message is reported in its own turn.
      if (message.delivery.receives > 1 || 'fault' in message) break;
      if (!joins?.([first, ...joined.map(({ content }) => content)], message.content)) break;
      try {
        await admit?.(message.content, message.delivery);
      } catch {
        break;
      }
      joined.push(message);
    }
    return joined;
  };

  const attempt = async (
    message: ParsedMessage<Message>,
    behind: readonly ParsedMessage<Message>[],
  ): Promise<Outcome> => {
    const { delivery } = message;
    const rejected = async (reason: RejectedMessageError): Promise<Outcome> => {
      await setAside(message, reason, order, deadLetters, log);
      return { joined: [] };
    };
    if ('fault' in message) {
      if (message.fault instanceof RejectedMessageError) return rejected(message.fault);
      throw message.fault;
    }
    const { content } = message;
    const { delta } = about(content);
    const performed = async (): Promise<Outcome> => {
      await admit?.(content, delivery);
      const joined = delivery.receives > 1 ? [] : await joining(content, behind);
      const again = await perform(
        content,
        delivery,
        joined.map((each) => each.content),
      );
      return again ?? { joined: joined.map((each) => each.messageId) };
    };
    try {
      // The relay's log has the same delta ID.
      const working = delta === undefined ? performed() : inLogContext({ delta }, performed);
      return await withinDeadline(deadlineMs, working);
    } catch (error) {
      if (error instanceof RejectedMessageError) return rejected(error);
      log.warn('message.retrying', { ...about(content), receiveCount: delivery.receives, error });
      throw error;
    }
  };

  return async (
    message: ParsedMessage<Message>,
    behind: readonly ParsedMessage<Message>[] = [],
  ): Promise<Outcome> => {
    const { messageId, delivery } = message;
    try {
      return await inLogContext({ messageId }, () => attempt(message, behind));
    } catch (error) {
      if (delivery.receives >= OUT_OF_SIGHT_RECEIVES) metrics?.messageFailing?.();
      return { againInSeconds: retrySeconds(delivery.receives, error) };
    }
  };
}

/** Rejects when the dead-letter queue did not accept the message, so that its own queue keeps it. */
async function setAside(
  { messageId, delivery: { body, groupId } }: ReceivedMessage,
  reason: RejectedMessageError,
  order: Consumption<unknown>['order'],
  deadLetters: QueueSender,
  log: Log,
): Promise<void> {
  const letter = {
    body,
    ...defined({ groupId }),
    ...(order === 'group' ? { deduplicationId: messageId } : {}),
    attributes: { reason: reason.message },
  };
  try {
    const [failure] = await deadLetters.send([letter]);
    if (failure) throw new Error(`the dead-letter queue rejected it: ${failure.reason}`);
  } catch (error) {
    log.error('message.dead-letter-failed', { messageId, error });
    throw error;
  }
  log.error('message.rejected', { messageId, error: reason });
}

/** Rejects with `MessageDeadlineError` after that time. `work` continues, so it must be safe to repeat meanwhile. */
async function withinDeadline<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      reject(new MessageDeadlineError(`not done within ${deadlineMs} ms; the queue brings the message back`)),
    deadlineMs,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
