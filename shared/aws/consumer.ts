import {
  BatchProcessor,
  EventType,
  processPartialResponse,
  SqsFifoPartialProcessorAsync,
} from '@aws-lambda-powertools/batch';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { Again } from '#shared/engine/again.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { inLogContext, type Log } from '#shared/telemetry/log.ts';
import { invocation } from './invocation.ts';
import { RejectedMessageError } from './rejected-message.ts';
import type { VisibilityControl } from './sqs-visibility.ts';

/** How a function processes one queue's messages. */
export interface Consumption<Message> {
  /** Parses a message's body. Throws `MalformedMessageError` for an unreadable message. */
  readonly parse: (body: string) => Message;
  /**
   * Rejects with `RejectedMessageError` for a message whose sender or group does not allow processing. Absent: every
   * message is admitted.
   */
  readonly admit?: (message: Message, delivery: Delivery) => Promise<void>;
  /**
   * Processes a message and those that joined it (`behind`, in order): all or, when it rejects, none. Resolves with
   * the time of the next attempt, if one is needed. Rejects with `RejectedMessageError` for a message that must not
   * be processed.
   */
  readonly perform: (
    message: Message,
    delivery: Delivery,
    behind: readonly Message[],
  ) => Promise<Again | undefined>;
  /**
   * `group`: processes the messages of a message group in order. After a failure, the rest of the group is returned
   * to the queue. `none`: processes all messages of a batch concurrently.
   */
  readonly order: 'group' | 'none';
  /**
   * Reports whether a message of a group is processed together with the messages right before it. Called only for
   * messages that were received for the first time. Messages that failed together are retried separately, so that a
   * message that always fails blocks no other. Absent: each message is processed separately.
   */
  readonly joins?: (before: readonly Message[], next: Message) => boolean;
  /**
   * Limit of the time for one message. Less than the function's timeout, so that a slow message does not fail its
   * whole batch.
   */
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

export interface ConsumerDeps {
  /** The queue for messages that are unreadable or were rejected. */
  readonly deadLetters: QueueSender;
  readonly visibility: VisibilityControl;
  readonly log: Log;
  /**
   * Called as each invocation begins: data that was read earlier is unreliable then. Absent: the process is never
   * frozen.
   */
  readonly invoked?: () => void;
  /** Flushed at the end of each invocation. */
  readonly metrics?: { flush?(): void; messageFailing?(): void };
  /** Flushed at the end of each invocation. Absent or `undefined`: nothing receives notices. */
  readonly notices?: { flush(): Promise<void> } | undefined;
}

/**
 * From this many receives on, a message no longer counts in the age of a standard queue's oldest message (Amazon SQS
 * Developer Guide, `ApproximateAgeOfOldestMessage`). Failures of such a message are therefore counted here.
 */
const OUT_OF_SIGHT_RECEIVES = 3;

/** A record and the message in it. */
interface Read<Message> {
  readonly record: SQSRecord;
  readonly message: Message;
}

/** The error that returns an unfinished message to its queue. */
class AgainError extends Error {
  readonly again: Again;

  constructor(again: Again) {
    super();
    this.again = again;
  }
}

/** The error of a message that takes too long and returns to its queue. */
export class MessageDeadlineError extends Error {
  override readonly name = 'MessageDeadlineError';
}

/**
 * Returns the Lambda handler of a queue. It parses each message, processes it within its deadline, and reports to the
 * queue which messages to redeliver and when. An unreadable or rejected message moves to the dead-letter queue
 * immediately, with the reason as an attribute. With retries in place, SQS would redeliver it up to its limit, and on
 * a FIFO queue it would block its group meanwhile. The handler never throws for a failed message: the response names
 * it.
 */
export function consume<Message>(consumption: Consumption<Message>, deps: ConsumerDeps) {
  const { deadLetters, visibility, log } = deps;
  const { parse, admit, perform, order, joins, deadlineMs, retrySeconds, about } = consumption;

  /** Returns the messages behind `first`, in order, that are processed together with it. */
  const joining = async (first: Message, behind: readonly SQSRecord[]): Promise<readonly Read<Message>[]> => {
    const joined: Read<Message>[] = [];
    for (const record of behind) {
      const delivery = deliveryOf(record);
      if (delivery.receives > 1) break;
      try {
        const message = parse(record.body);
        if (!joins?.([first, ...joined.map((each) => each.message)], message)) break;
        await admit?.(message, delivery);
        joined.push({ record, message });
      } catch {
        // An invalid message is found and reported in its own turn.
        break;
      }
    }
    return joined;
  };

  /**
   * Processes a record and the records `behind` it in its group that join it. Calls `done` for each joined record
   * that was processed.
   */
  const handleRecord = async (
    record: SQSRecord,
    behind: readonly SQSRecord[],
    done: (messageId: string) => void,
  ): Promise<void> => {
    let message: Message;
    try {
      message = parse(record.body);
    } catch (error) {
      if (!(error instanceof RejectedMessageError)) throw error;
      await setAside(record, error, order, deadLetters, log);
      return;
    }
    const delivery = deliveryOf(record);
    const { delta } = about(message);
    const performed = async () => {
      await admit?.(message, delivery);
      const joined = delivery.receives > 1 ? [] : await joining(message, behind);
      const again = await perform(
        message,
        delivery,
        joined.map((each) => each.message),
      );
      for (const each of joined) done(each.record.messageId);
      return again;
    };
    try {
      // The relay's log has the same delta ID.
      const working = delta === undefined ? performed() : inLogContext({ delta }, performed);
      const again = await withinDeadline(deadlineMs, working);
      if (again) throw new AgainError(again);
    } catch (error) {
      if (error instanceof RejectedMessageError) {
        await setAside(record, error, order, deadLetters, log);
        return;
      }
      if (!(error instanceof AgainError))
        log.warn('message.retrying', { ...about(message), receiveCount: delivery.receives, error });
      throw error;
    }
  };

  return middy<SQSEvent, SQSBatchResponse>()
    .use(
      invocation({
        invoked: () => deps.invoked?.(),
        flush: () => {
          deps.metrics?.flush?.();
          return deps.notices?.flush();
        },
      }),
    )
    .handler(async (event) => {
      const errors = new Map<string, unknown>();
      /** IDs of messages that were processed together with an earlier one. */
      const done = new Set<string>();
      const handle = async (record: SQSRecord) => {
        const { messageId } = record;
        if (done.has(messageId)) return;
        const behind = joins ? behindInGroup(record, event.Records) : [];
        const handled = () => handleRecord(record, behind, (id) => done.add(id));
        await inLogContext({ messageId }, handled).catch((error: unknown) => {
          errors.set(messageId, error);
          const { receives } = deliveryOf(record);
          if (!(error instanceof AgainError) && receives >= OUT_OF_SIGHT_RECEIVES)
            deps.metrics?.messageFailing?.();
          throw error;
        });
      };
      // Don't throw when all messages failed: the response names each of them, which an error can't.
      const settings = { throwOnFullBatchFailure: false };
      const response = await (order === 'group'
        ? processPartialResponse(event, handle, new SqsFifoPartialProcessorAsync(), {
            ...settings,
            skipGroupOnError: true,
          })
        : processPartialResponse(event, handle, new BatchProcessor(EventType.SQS), settings));
      const failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      // The rest of a group waits for the failed message and is redelivered with it.
      const retries = event.Records.filter(({ messageId }) => failed.has(messageId)).flatMap((record) => {
        const error = errors.get(record.messageId);
        const seconds =
          error instanceof AgainError
            ? error.again.againInSeconds
            : retrySeconds(deliveryOf(record).receives, error);
        return seconds === undefined ? [] : [{ receiptHandle: record.receiptHandle, seconds }];
      });
      if (retries.length > 0) await visibility.retryIn(retries);
      return response;
    });
}

const deliveryOf = ({ attributes, body }: SQSRecord): Delivery => ({
  body,
  receives: Number(attributes.ApproximateReceiveCount),
  senderId: attributes.SenderId,
  groupId: attributes.MessageGroupId,
});

const behindInGroup = (record: SQSRecord, records: readonly SQSRecord[]): readonly SQSRecord[] =>
  records
    .slice(records.indexOf(record) + 1)
    .filter(({ attributes }) => attributes.MessageGroupId === record.attributes.MessageGroupId);

/**
 * Moves a message to the dead-letter queue. Rejects when that queue did not accept it, so that its own queue keeps
 * the message.
 */
async function setAside(
  { body, messageId, attributes }: SQSRecord,
  reason: RejectedMessageError,
  order: Consumption<unknown>['order'],
  deadLetters: QueueSender,
  log: Log,
): Promise<void> {
  const groupId = attributes.MessageGroupId;
  const letter = {
    body,
    ...(groupId === undefined ? {} : { groupId }),
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

/**
 * Resolves with the result of `work`. Rejects with `MessageDeadlineError` when `work` takes longer than `deadlineMs`.
 * `work` itself continues, so it must be safe to repeat meanwhile.
 */
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
