import type { MiddlewareObj } from '@middy/core';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import {
  type Consumption,
  type ParsedMessage,
  parseReceived,
  type ReceivedMessage,
  type Returned,
  returnToQueue,
} from '#shared/aws/message-processor.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import { enterLogContext } from '#shared/telemetry/log.ts';

/** Use it first: the context of a later middleware does not reach the handler, because middy waits between them. */
export const requestLogContext = (): MiddlewareObj => ({
  before: ({ context }) => enterLogContext({ requestId: context.awsRequestId }),
});

/** Calls `invoked` as each invocation begins: the process may have been frozen since it read its data. */
export const onInvocation = (invoked: (() => void) | undefined): MiddlewareObj => ({
  before() {
    invoked?.();
  },
});

/** Calls `flush` at the end of each invocation, whether that succeeds or fails. */
export const flushing = (flush: () => void | Promise<void>): MiddlewareObj => ({
  after: flush,
  onError: flush,
});

/** The event that a handler with `parsing` receives. */
export interface MessagesEvent<Message> {
  readonly messages: readonly ParsedMessage<Message>[];
}

/** Parses the bodies of an SQS event's records. An unreadable message carries the error of its parser. */
export const parsing = <Message>(
  parse: Consumption<Message>['parse'],
): MiddlewareObj<SQSEvent | MessagesEvent<Message>> => ({
  before(request) {
    const { Records } = request.event as SQSEvent;
    request.event = { messages: Records.map((record) => parseReceived(receivedOf(record), parse)) };
  },
});

const receivedOf = ({ messageId, receiptHandle, attributes, body }: SQSRecord): ReceivedMessage => ({
  messageId,
  receiptHandle,
  delivery: {
    body,
    receives: Number(attributes.ApproximateReceiveCount),
    senderId: attributes.SenderId,
    groupId: attributes.MessageGroupId,
  },
});

/** Reports the returned messages as the batch's failures. Sets first when they are visible again. */
export const partialBatch = (
  visibility: VisibilityControl,
): MiddlewareObj<unknown, readonly Returned[] | SQSBatchResponse> => ({
  async after(request) {
    const returned = request.response as readonly Returned[];
    await returnToQueue(returned, visibility);
    request.response = {
      batchItemFailures: returned.map(({ messageId }) => ({ itemIdentifier: messageId })),
    };
  },
});
