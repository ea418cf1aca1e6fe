import middy from '@middy/core';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import {
  type Consumption,
  isUnfinished,
  type MessageDeps,
  messageProcessor,
  type Outcome,
  type ParsedMessage,
  processConcurrently,
  type Returned,
} from '#shared/aws/message-processor.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import {
  flushing,
  type MessagesEvent,
  onInvocation,
  parsing,
  partialBatch,
  requestLogContext,
} from './middlewares.ts';

export interface ConsumerDeps extends MessageDeps {
  readonly visibility: VisibilityControl;
  /** Data that was read earlier is unreliable when an invocation begins. Absent: the process is never frozen. */
  readonly invoked?: () => void;
  /** Flushed at the end of each invocation. */
  readonly metrics?: MessageDeps['metrics'] & { flush?(): void };
  /** Flushed at the end of each invocation. Absent or `undefined`: nothing receives notices. */
  readonly notices?: { flush(): Promise<void> } | undefined;
}

/** A Lambda function on an SQS queue with partial batch responses. */
export type SqsFunction = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;

/**
 * The Lambda handler of a queue, which reports the messages to redeliver, and when. Never throws for a failed message.
 */
export function consume<Message>(consumption: Consumption<Message>, deps: ConsumerDeps): SqsFunction {
  const { parse, order, retrySeconds } = consumption;
  const { visibility, metrics, notices, invoked } = deps;
  const process = messageProcessor(consumption, deps);
  return middy<MessagesEvent<Message>, readonly Returned[]>()
    .use(requestLogContext())
    .use(onInvocation(invoked))
    .use(
      flushing(() => {
        metrics?.flush?.();
        return notices?.flush();
      }),
    )
    .use(parsing(parse))
    .use(partialBatch(visibility))
    .handler(async ({ messages }) =>
      order === 'group'
        ? inGroups(messages, process, retrySeconds)
        : (await processConcurrently(messages, process)).returned,
    ) as unknown as SqsFunction;
}

type Process<Message> = (
  message: ParsedMessage<Message>,
  behind?: readonly ParsedMessage<Message>[],
) => Promise<Outcome>;

/** The rest of a group waits for its failed message, and is redelivered with it. */
async function inGroups<Message>(
  messages: readonly ParsedMessage<Message>[],
  process: Process<Message>,
  retrySeconds: Consumption<Message>['retrySeconds'],
): Promise<readonly Returned[]> {
  /** IDs of messages that were processed together with an earlier one. */
  const joined = new Set<string>();
  const waiting = new Set<string | undefined>();
  const returned: Returned[] = [];
  for (const [index, message] of messages.entries()) {
    const { groupId, receives } = message.delivery;
    if (joined.has(message.messageId)) continue;
    if (waiting.has(groupId)) {
      returned.push({ ...message, againInSeconds: retrySeconds(receives, undefined) });
      continue;
    }
    const behind = messages.slice(index + 1).filter(({ delivery }) => delivery.groupId === groupId);
    const outcome = await process(message, behind);
    if (isUnfinished(outcome)) {
      waiting.add(groupId);
      returned.push({ ...message, ...outcome });
    } else for (const messageId of outcome.joined) joined.add(messageId);
  }
  return returned;
}
