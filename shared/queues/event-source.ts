import {
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { queueName } from './queue-name.ts';
import { queueArn } from './queue-set.ts';
import { toSqsRecord } from './sqs-record.ts';

export interface EventSourceOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  /** Messages in one event, at most 10. */
  readonly batchSize: number;
  /** Batches that are handled at a time. */
  readonly concurrency: number;
  readonly handler: (event: SQSEvent) => Promise<SQSBatchResponse>;
  /** Seconds until a message that was not handled is seen again; absent = the queue's own time. */
  readonly visibilityTimeoutSeconds?: number;
  readonly log: Log;
}

export interface EventSource {
  /** Takes no more messages; resolves when those that were taken are handled, a second later at most otherwise. */
  stop(): Promise<void>;
}

/**
 * Seconds for which one call waits for messages. Short, so that `stop` need not break a call off: a message that
 * the queue hands to a broken call stays hidden until its visibility timeout.
 */
const WAIT_SECONDS = 1;

const RECONNECT: Backoff = { firstMs: 100, longestMs: 10_000 };

/**
 * Hands a queue's messages to a handler as Lambda's event source mapping does, with `ReportBatchItemFailures`:
 * messages that the handler does not report are deleted; those it reports, or all when it throws, are left to
 * their visibility timeout, then come again until the queue dead-letters them. A FIFO queue keeps the order of
 * its groups by itself: a group with messages in flight is withheld. An unreachable queue is tried for ever.
 */
export function startEventSource(options: EventSourceOptions): EventSource {
  const stopping = new AbortController();
  const polling = poll(options, stopping.signal);
  return {
    stop() {
      stopping.abort();
      return polling;
    },
  };
}

async function poll(options: EventSourceOptions, stopping: AbortSignal): Promise<void> {
  const { client, queueUrl, concurrency, log } = options;
  const inFlight = new Set<Promise<void>>();
  let arn: string | undefined;
  for (let failures = 0; !stopping.aborted; ) {
    try {
      arn ??= await queueArn(client, queueUrl);
      const messages = await receive(options);
      failures = 0;
      if (messages.length === 0) continue;
      const handling = handle(messages, arn, options).finally(() => inFlight.delete(handling));
      inFlight.add(handling);
    } catch (error) {
      failures += 1;
      log.warn('queue.unreachable', { queue: queueName(queueUrl), failures, reason: error });
      await pause(backoffMs(failures, RECONNECT), stopping);
    }
    if (inFlight.size >= concurrency) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
}

async function receive(options: EventSourceOptions): Promise<readonly Message[]> {
  const { Messages } = await options.client.send(
    new ReceiveMessageCommand({
      QueueUrl: options.queueUrl,
      MaxNumberOfMessages: options.batchSize,
      WaitTimeSeconds: WAIT_SECONDS,
      VisibilityTimeout: options.visibilityTimeoutSeconds,
      MessageSystemAttributeNames: ['All'],
      MessageAttributeNames: ['All'],
    }),
  );
  return Messages ?? [];
}

/** Never rejects: what goes wrong shows in the log, and in messages that come again. */
async function handle(messages: readonly Message[], arn: string, options: EventSourceOptions): Promise<void> {
  const { client, queueUrl, handler, log } = options;
  const queue = queueName(queueUrl);
  let failed: ReadonlySet<string>;
  try {
    const response = await handler({ Records: messages.map((message) => toSqsRecord(message, arn)) });
    failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
  } catch (error) {
    log.warn('batch.failed', { queue, messages: messages.length, reason: error });
    return;
  }
  const known = new Set(messages.map(({ MessageId }) => MessageId));
  const unknown = [...failed].find((id) => !known.has(id));
  if (unknown !== undefined) {
    // As Lambda does: a report that names no message of the batch says nothing about the others either.
    log.warn('batch.failed', {
      queue,
      messages: messages.length,
      reason: `unknown message ${unknown} reported`,
    });
    return;
  }
  const done = messages.filter(({ MessageId = '' }) => !failed.has(MessageId));
  if (done.length === 0) return;
  const entries = done.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
  try {
    const { Failed = [] } = await client.send(
      new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }),
    );
    for (const { Message: reason } of Failed) log.warn('message.not-deleted', { queue, reason });
  } catch (error) {
    log.warn('message.not-deleted', { queue, messages: done.length, reason: error });
  }
}
