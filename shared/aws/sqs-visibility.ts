import { ChangeMessageVisibilityBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Log } from '#shared/telemetry/log.ts';
import { MAX_BATCH_MESSAGES, MAX_VISIBILITY_SECONDS } from './limits.ts';
import { queueName } from './sqs-sender.ts';

type Retry = Parameters<VisibilityControl['retryIn']>[0][number];

/** If this fails, the message keeps its visibility timeout. */
export class SqsVisibility implements VisibilityControl {
  readonly #client: SQSClient;
  readonly #queueUrl: string;
  readonly #log: Log;

  constructor(deps: { readonly client: SQSClient; readonly queueUrl: string; readonly log: Log }) {
    this.#client = deps.client;
    this.#queueUrl = deps.queueUrl;
    this.#log = deps.log;
  }

  async retryIn(messages: readonly Retry[]): Promise<void> {
    for (let from = 0; from < messages.length; from += MAX_BATCH_MESSAGES) {
      await this.#change(messages.slice(from, from + MAX_BATCH_MESSAGES));
    }
  }

  async #change(messages: readonly Retry[]): Promise<void> {
    const entries = messages.map(({ receiptHandle, seconds }, index) => ({
      Id: String(index),
      ReceiptHandle: receiptHandle,
      VisibilityTimeout: Math.min(Math.max(Math.ceil(seconds), 0), MAX_VISIBILITY_SECONDS),
    }));
    try {
      const { Failed = [] } = await this.#client.send(
        new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#queueUrl, Entries: entries }),
      );
      for (const { Message: reason } of Failed) this.#unchanged(reason);
    } catch (error) {
      this.#unchanged(error);
    }
  }

  #unchanged(reason: unknown): void {
    this.#log.warn('message.visibility-update-failed', { queue: queueName(this.#queueUrl), error: reason });
  }
}

export interface VisibilityControl {
  /** Makes received messages visible again after `seconds` (0 to 43,200). Best effort: never rejects. */
  retryIn(messages: readonly { receiptHandle: string; seconds: number }[]): Promise<void>;
}
