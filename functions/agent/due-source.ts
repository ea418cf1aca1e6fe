import {
  DeleteMessageBatchCommand,
  type Message,
  type MessageSystemAttributeName,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { ReceivedMessage } from '#shared/aws/consume.ts';
import { EVICT_BATCH_SIZE } from '#shared/aws/due-consumption.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { queueName } from '#shared/aws/sqs-sender.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin, reportSilence } from '#shared/time/stopping.ts';
import type { DueMetrics } from './due-metrics.ts';

/**
 * Seconds of one receive call. An aborted one may have received messages, invisible until their timeout: `stop` waits
 * for it, so it must be shorter than a pod's time to stop.
 */
export const WAIT_SECONDS = 10;
/** Batches that are handled at a time. `evict` mostly waits for API servers, for many nodes in parallel. */
export const MAX_CONCURRENT_BATCHES = 16;
/** Delays between receive calls while the queue doesn't answer. */
export const RETRY: Backoff = { firstMs: 500, longestMs: 10_000 };
/** Time without an answer after which the queue counts as unreachable: `WAIT_SECONDS`, and the time of a call. */
export const UNREACHED_MS = 15_000;
/** Interval at which an ongoing outage is logged again. */
const LOG_AGAIN_MS = 10 * 60_000;

const ATTRIBUTES: MessageSystemAttributeName[] = ['ApproximateReceiveCount', 'MessageGroupId', 'SenderId'];

export interface DueSourceDeps {
  /** A client whose timeouts allow calls that wait: `SQS_WAITING_SETTINGS`. */
  readonly client: Pick<SQSClient, 'send'>;
  readonly queueUrl: string;
  /** Processes messages, and resolves with those that return to the queue. */
  readonly handle: (messages: readonly ReceivedMessage[]) => Promise<readonly ReceivedMessage[]>;
  readonly visibility: VisibilityControl;
  /** The queue answered; with an error, it did not. */
  readonly reached: (error?: unknown) => void;
  readonly metrics: DueMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Passes due messages from an SQS queue to the evictor of this process.
 * - A message that is done is deleted.
 * - An unfinished message is left to its queue, and becomes visible again.
 * - While the queue is unreachable, the source retries indefinitely.
 */
export class DueSource {
  readonly #deps: DueSourceDeps;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #inHand = new Map<Promise<void>, readonly ReceivedMessage[]>();
  readonly #polling: Promise<void>;
  #logged: Age | undefined;

  /** Starts polling immediately. */
  constructor(deps: DueSourceDeps) {
    this.#deps = deps;
    this.#name = queueName(deps.queueUrl);
    deps.metrics.observe(() => this.#inHand.size);
    this.#polling = this.#poll();
  }

  /**
   * Resolves when received messages are handled or returned: those not handled `withinMs` after the last receive, so
   * that another replica gets them. A message may be handled twice.
   */
  async stop(withinMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
    await endsWithin(withinMs, Promise.all(this.#inHand.keys()));
    await this.#giveBack([...this.#inHand.values()].flat());
  }

  /** Never rejects. */
  async #poll(): Promise<void> {
    const { signal } = this.#stopping;
    const { reached } = this.#deps;
    for (let failures = 0; !signal.aborted; ) {
      while (this.#inHand.size >= MAX_CONCURRENT_BATCHES) await Promise.race(this.#inHand.keys());
      if (signal.aborted) return;
      try {
        const records = await reportSilence(this.#receive(), reached, UNREACHED_MS);
        failures = 0;
        reached();
        if (signal.aborted) await this.#giveBack(records);
        else if (records.length > 0) this.#take(records);
      } catch (error) {
        failures += 1;
        this.#failed(error);
        await pause(backoffMs(failures, RETRY), signal);
      }
    }
  }

  async #receive(): Promise<readonly ReceivedMessage[]> {
    const { client, queueUrl } = this.#deps;
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
    return Messages.map(receivedOf);
  }

  #take(records: readonly ReceivedMessage[]): void {
    const handling = this.#handle(records).finally(() => this.#inHand.delete(handling));
    this.#inHand.set(handling, records);
  }

  /** Never rejects. */
  async #handle(messages: readonly ReceivedMessage[]): Promise<void> {
    const { handle, metrics, log } = this.#deps;
    try {
      const returned = new Set((await handle(messages)).map(({ receiptHandle }) => receiptHandle));
      const done = messages.filter(({ receiptHandle }) => !returned.has(receiptHandle));
      metrics.handled(done.length, returned.size);
      await this.#delete(done);
    } catch (error) {
      log.warn('batch.failed', { queue: this.#name, messages: messages.length, error });
      metrics.handled(0, messages.length);
    }
  }

  async #delete(records: readonly ReceivedMessage[]): Promise<void> {
    if (records.length === 0) return;
    const { client, queueUrl } = this.#deps;
    const Entries = records.map(({ receiptHandle: ReceiptHandle }, index) => ({
      Id: `${index}`,
      ReceiptHandle,
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

  /** The message is redelivered, which does no harm. */
  #notDeleted(record: ReceivedMessage | undefined, reason: unknown): void {
    const messageId = record?.messageId ?? '';
    this.#deps.log.warn('message.not-deleted', { queue: this.#name, messageId, error: reason });
  }

  async #giveBack(records: readonly ReceivedMessage[]): Promise<void> {
    if (records.length === 0) return;
    await this.#deps.visibility.retryIn(records.map(({ receiptHandle }) => ({ receiptHandle, seconds: 0 })));
  }

  #failed(reason: unknown): void {
    const { reached, clock, metrics, log } = this.#deps;
    reached(reason);
    metrics.receiveFailed();
    if (this.#logged && this.#logged.atLeastMs < LOG_AGAIN_MS) return;
    this.#logged = new Age(clock);
    log.error('queue.unreachable', { queue: this.#name, error: reason });
  }
}

const receivedOf = ({ Attributes = {}, ...message }: Message): ReceivedMessage => ({
  messageId: message.MessageId ?? '',
  receiptHandle: message.ReceiptHandle ?? '',
  body: message.Body ?? '',
  receives: Number(Attributes.ApproximateReceiveCount ?? 1),
  senderId: Attributes.SenderId ?? '',
  groupId: Attributes.MessageGroupId,
});
