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

/** How a function deals with one queue's messages. */
export interface Consumption<Message> {
  /** Reads a message's body. Throws `MalformedMessageError` for one that nobody can read. */
  readonly parse: (body: string) => Message;
  /** Rejects with `RejectedMessageError` for a message that is not to be done, for how it came. Absent: there is none. */
  readonly admit?: (message: Message, delivery: Delivery) => Promise<void>;
  /**
   * Does what a message asks for, and those do that joined it (`behind`, in order): all or, when it rejects, none. Resolves with when
   * to do it again; rejects with `RejectedMessageError` for one that is not to be done.
   */
  readonly perform: (
    message: Message,
    delivery: Delivery,
    behind: readonly Message[],
  ) => Promise<Again | undefined>;
  /**
   * `group`: those of a message group one after the other; behind one that fails the rest of its group is given back.
   * `none`: all of a batch at once.
   */
  readonly order: 'group' | 'none';
  /**
   * Whether a message of a group is done together with those right before it. Only those are asked for that came for the
   * first time: what failed together comes again one by one, so that a message that can never be done keeps no other. Absent: each
   * is done by itself.
   */
  readonly joins?: (before: readonly Message[], next: Message) => boolean;
  /** What one message may take; less than the function's time, so that a slow one does not fail its whole batch. */
  readonly deadlineMs: number;
  /** Whole seconds until a message that failed comes again; `undefined`: as long as its queue hides it. */
  readonly retrySeconds: (receives: number, error: unknown) => number | undefined;
  /** For the log: the node that a message is about, and the delta that it is, if it is one. */
  readonly about: (message: Message) => NodeRef & { readonly delta?: string };
}

/** How a message came, as its queue says. */
export interface Delivery {
  /** How often it came, this time included. */
  readonly receives: number;
  /** Who sent it: AWS names users and roles by their unique IDs. */
  readonly senderId: string;
  readonly groupId: string | undefined;
  /** Its text, for who sends it on. */
  readonly body: string;
}

export interface ConsumerDeps {
  /** Where messages go that nobody can read, or that are not to be done. */
  readonly deadLetters: QueueSender;
  readonly visibility: VisibilityControl;
  readonly log: Log;
  /** Called as each invocation begins: what was read before it is not to be relied on. Absent: the process is never frozen. */
  readonly invoked?: () => void;
  /** Written at the end of each invocation. */
  readonly metrics?: { flush?(): void; messageFailing?(): void };
  /** Told at the end of each invocation, if anybody is to be told. */
  readonly notices?: { flush(): Promise<void> } | undefined;
}

/**
 * Received so often, a message no longer counts in the age of the oldest message of a standard queue (Amazon SQS Developer Guide,
 * `ApproximateAgeOfOldestMessage`): it is counted here if it fails.
 */
const OUT_OF_SIGHT_RECEIVES = 3;

/** A record, and what it says. */
interface Read<Message> {
  readonly record: SQSRecord;
  readonly message: Message;
}

/** Tells the batch that a message is to be kept. */
class AgainError extends Error {
  readonly again: Again;

  constructor(again: Again) {
    super();
    this.again = again;
  }
}

/** A message took too long and goes back to its queue. */
export class MessageDeadlineError extends Error {
  override readonly name = 'MessageDeadlineError';
}

/**
 * The Lambda handler of a queue: reads each message, does its work within its time, and tells the queue which ones
 * to bring again and when. A message that nobody can read, or that is refused, is set aside at once, with the reason as an attribute:
 * retried in place it would come until the queue gives up, and on a FIFO queue hold its group up meanwhile. Nothing
 * that fails is thrown: the response names it.
 */
export function consume<Message>(consumption: Consumption<Message>, deps: ConsumerDeps) {
  const { deadLetters, visibility, log } = deps;
  const { parse, admit, perform, order, joins, deadlineMs, retrySeconds, about } = consumption;

  /** Of what came behind a message, in order, that which is done together with it. */
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
        // What is wrong with it is found, and told, when it is its turn.
        break;
      }
    }
    return joined;
  };

  /** Handles a record, and what came `behind` it in its group as far as that joins it: whatever of it is done is told to `done`. */
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
      // By its id a delta is found in the relay's log, too.
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
      /** Done together with one before it. */
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
      // All failed is no reason to throw: the response says so, and a thrown batch says less.
      const settings = { throwOnFullBatchFailure: false };
      const response = await (order === 'group'
        ? processPartialResponse(event, handle, new SqsFifoPartialProcessorAsync(), {
            ...settings,
            skipGroupOnError: true,
          })
        : processPartialResponse(event, handle, new BatchProcessor(EventType.SQS), settings));
      const failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      // Of a group, those behind the one that failed wait for it, and come again with it.
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

/** Rejects when the dead-letter queue did not take the message, so that its own queue keeps it. */
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
 * What `work` resolves to; rejects with `MessageDeadlineError` when that takes longer than `deadlineMs`. The work
 * itself goes on for as long as it is let: it must be such that it can be done again meanwhile.
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
