import {
  DeleteMessageBatchCommand,
  type Message,
  type MessageSystemAttributeName,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import { EVICT_BATCH_SIZE } from '#shared/aws/due/handler.ts';
import { type BatchHandler, handledOf } from '#shared/aws/handled.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { queueName } from '#shared/aws/sqs-sender.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { DueMetrics } from './due-metrics.ts';

/**
 * Seconds for which one receive call waits for messages. An aborted call may already have received messages,
 * which stay invisible until their visibility timeout ends. So `stop` waits for the call, and the call must
 * be shorter than a pod's time to stop.
 */
export const WAIT_SECONDS = 10;
/** Batches that are handled at a time. `evict` mostly waits for API servers, for many nodes in parallel. */
export const MAX_CONCURRENT_BATCHES = 16;
/** Delays between receive calls while the queue doesn't answer. */
const RETRY: Backoff = { firstMs: 500, longestMs: 10_000 };
/** Time without an answer after which the queue counts as unreachable. Shorter outages are ignored. */
export const UNREACHED_MS = 30_000;
/** Interval at which an ongoing outage is logged again. */
const TELL_AGAIN_MS = 10 * 60_000;

const ATTRIBUTES: MessageSystemAttributeName[] = [
  'ApproximateReceiveCount',
  'ApproximateFirstReceiveTimestamp',
  'MessageGroupId',
  'SenderId',
  'SentTimestamp',
];

export interface DueSourceDeps {
  /** A client whose timeouts allow calls that wait: `SQS_WAITING_SETTINGS`. */
  readonly client: Pick<SQSClient, 'send'>;
  readonly queueUrl: string;
  readonly queueArn: string;
  readonly handler: BatchHandler;
  readonly visibility: VisibilityControl;
  readonly metrics: DueMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Passes due messages from an SQS queue to the handler of `evict`, as Lambda's event source mapping does with
 * `ReportBatchItemFailures`.
 * - A message that the handler doesn't report as failed is deleted.
 * - A message that the handler reports returns at the time that the handler set, or when its visibility
 *   timeout ends.
 * - While the queue is unreachable, the source retries indefinitely.
 */
export class DueSource {
  readonly #deps: DueSourceDeps;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #inHand = new Map<Promise<void>, readonly SQSRecord[]>();
  readonly #polling: Promise<void>;
  #failing: Age | undefined;
  #told: Age | undefined;

  /** Starts polling immediately. */
  constructor(deps: DueSourceDeps) {
    this.#deps = deps;
    this.#name = queueName(deps.queueUrl);
    deps.metrics.observe(() => this.#inHand.size);
    this.#polling = this.#poll();
  }

  /**
   * Reports whether the queue is reachable. An outage shorter than `UNREACHED_MS` still counts as reachable.
   */
  get reaches(): boolean {
    return this.#failing === undefined || this.#failing.atLeastMs < UNREACHED_MS;
  }

  /**
   * Stops receiving, and resolves when the received messages are handled or returned. Messages that aren't
   * handled `withinMs` after the last receive call are returned to the queue, so that another replica gets
   * them immediately. Handling a message twice does no harm.
   */
  async stop(withinMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
    const handled = new AbortController();
    const handling = Promise.all(this.#inHand.keys()).then(() => handled.abort());
    await Promise.race([handling, pause(withinMs, handled.signal)]);
    await this.#giveBack([...this.#inHand.values()].flat());
  }

  /** Never rejects. */
  async #poll(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      while (this.#inHand.size >= MAX_CONCURRENT_BATCHES) await Promise.race(this.#inHand.keys());
      if (signal.aborted) return;
      try {
        const records = await this.#receive();
        failures = 0;
        this.#failing = undefined;
        if (signal.aborted) await this.#giveBack(records);
        else if (records.length > 0) this.#take(records);
      } catch (error) {
        failures += 1;
        this.#failed(error);
        await pause(backoffMs(failures, RETRY), signal);
      }
    }
  }

  async #receive(): Promise<readonly SQSRecord[]> {
    const { client, queueUrl, queueArn } = this.#deps;
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: EVICT_BATCH_SIZE,
        WaitTimeSeconds: WAIT_SECONDS,
        // A received message is handled immediately, so it can become visible again as soon as its handling
        // must be over. If an agent dies, another replica gets its messages within a minute. The queue's own
        // visibility timeout is for Lambda, which may have to wait before it begins.
        VisibilityTimeout: QUEUES.evictionsDue.functionTimeoutSeconds,
        MessageSystemAttributeNames: ATTRIBUTES,
      }),
    );
    return Messages.map((message) => recordOf(message, queueArn));
  }

  #take(records: readonly SQSRecord[]): void {
    const handling = this.#handle(records).finally(() => this.#inHand.delete(handling));
    this.#inHand.set(handling, records);
  }

  /** Never rejects. */
  async #handle(records: readonly SQSRecord[]): Promise<void> {
    const { handler, metrics, log } = this.#deps;
    const handled = await handledOf(records, handler, this.#name, log);
    metrics.handled(handled.length, records.length - handled.length);
    await this.#delete(handled);
  }

  async #delete(records: readonly SQSRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { client, queueUrl } = this.#deps;
    const Entries = records.map(({ receiptHandle: ReceiptHandle }, index) => ({
      ...{ Id: `${index}`, ReceiptHandle },
    }));
    try {
      const { Failed = [] } = await client.send(
        new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }),
      );
      for (const { Id, Message: reason } of Failed) this.#notDeleted(records[Number(Id)], reason);
    } catch (error) {
      for (const record of records) this.#notDeleted(record, error);
    }
  }

  /** Logs the failure. The message is redelivered, which does no harm. */
  #notDeleted(record: SQSRecord | undefined, reason: unknown): void {
    const messageId = record?.messageId ?? '';
    this.#deps.log.warn('message.not-deleted', { queue: this.#name, messageId, error: reason });
  }

  async #giveBack(records: readonly SQSRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#deps.visibility.retryIn(records.map(({ receiptHandle }) => ({ receiptHandle, seconds: 0 })));
  }

  #failed(reason: unknown): void {
    const { clock, metrics, log } = this.#deps;
    metrics.receiveFailed();
    this.#failing ??= new Age(clock);
    if (this.#told && this.#told.atLeastMs < TELL_AGAIN_MS) return;
    this.#told = new Age(clock);
    log.error('queue.unreachable', { queue: this.#name, error: reason });
  }
}

/** Converts a received message to a record of a Lambda event. */
function recordOf(message: Message, queueArn: string): SQSRecord {
  const { MessageId = '', ReceiptHandle = '', Body = '', Attributes = {} } = message;
  const { MessageGroupId } = Attributes;
  return {
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: {
      ApproximateReceiveCount: Attributes.ApproximateReceiveCount ?? '1',
      ApproximateFirstReceiveTimestamp: Attributes.ApproximateFirstReceiveTimestamp ?? '',
      SenderId: Attributes.SenderId ?? '',
      SentTimestamp: Attributes.SentTimestamp ?? '',
      ...(MessageGroupId === undefined ? {} : { MessageGroupId }),
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: queueArn.split(':')[3] ?? '',
  };
}
