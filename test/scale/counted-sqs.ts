import {
  ChangeMessageVisibilityBatchCommand,
  SendMessageBatchCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import { sqsRecord } from '#test/world/sqs-event.ts';

/** SQS bills a request once for every 64 KiB of its payload. */
const CHUNK_BYTES = 64 * 1024;

/** What a queue was asked for. */
export interface QueueCounts {
  readonly sends: number;
  readonly receives: number;
  readonly deletes: number;
  /** Of all these and of changed visibilities: what SQS bills. */
  readonly requests: number;
  readonly messages: number;
  readonly bytes: number;
}

export const NO_COUNTS: QueueCounts = {
  ...{ sends: 0, receives: 0, deletes: 0 },
  ...{ requests: 0, messages: 0, bytes: 0 },
};

interface Message {
  readonly id: string;
  readonly body: string;
  readonly groupId: string | undefined;
  visibleAt: number;
  receives: number;
}

/** Queues in memory behind a client of SQS, by URL; every request is counted. */
export class CountedSqs {
  readonly client: SQSClient;
  readonly #counts = new Map<string, QueueCounts>();
  readonly #waiting = new Map<string, Message[]>();
  #sent = 0;

  constructor() {
    // The one method that our adapters call of it.
    this.client = { send: async (command: unknown) => this.#answer(command) } as unknown as SQSClient;
  }

  counts(url: string): QueueCounts {
    return this.#counts.get(url) ?? NO_COUNTS;
  }

  /** Puts a message there that nobody of ours sends: a schedule's. */
  deliver(url: string, body: string): void {
    this.#put(url, { body, groupId: undefined, visibleAt: Date.now() });
  }

  /** A batch of up to `size` messages that are visible; of a group that is in flight on a FIFO queue none. */
  receive(url: string, size: number): readonly SQSRecord[] {
    const queue = this.#queue(url);
    const fifo = url.endsWith('.fifo');
    const now = Date.now();
    const busy = new Set(
      fifo ? queue.filter((each) => each.visibleAt > now).map(({ groupId }) => groupId) : [],
    );
    const batch = queue.filter((each) => each.visibleAt <= now && !busy.has(each.groupId)).slice(0, size);
    if (batch.length === 0) return [];
    this.#count(url, { receives: 1, requests: chunks(batch) });
    return batch.map((message) => {
      message.visibleAt = Number.POSITIVE_INFINITY;
      message.receives += 1;
      const { id, body, receives, groupId } = message;
      return sqsRecord(body, { messageId: id, receives, ...(groupId === undefined ? {} : { groupId }) });
    });
  }

  /** What a handler is done with. */
  delete(url: string, ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.#count(url, { deletes: 1, requests: 1 });
    this.#waiting.set(
      url,
      this.#queue(url).filter(({ id }) => !ids.includes(id)),
    );
  }

  #answer(command: unknown): object {
    if (command instanceof SendMessageBatchCommand) {
      const { QueueUrl: url = '', Entries: entries = [] } = command.input;
      const messages = entries.map(({ MessageBody: body = '', MessageGroupId: groupId, DelaySeconds = 0 }) =>
        this.#put(url, { body, groupId, visibleAt: Date.now() + DelaySeconds * 1000 }),
      );
      const bytes = messages.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
      this.#count(url, { sends: 1, requests: chunks(messages), messages: messages.length, bytes });
      return {};
    }
    if (command instanceof ChangeMessageVisibilityBatchCommand) {
      const { QueueUrl: url = '', Entries: entries = [] } = command.input;
      this.#count(url, { requests: 1 });
      for (const { ReceiptHandle, VisibilityTimeout = 0 } of entries) {
        const message = this.#queue(url).find(({ id }) => id === ReceiptHandle);
        if (message) message.visibleAt = Date.now() + VisibilityTimeout * 1000;
      }
      return {};
    }
    throw new Error(`Nobody counts ${command?.constructor.name}.`);
  }

  #put(url: string, message: Pick<Message, 'body' | 'groupId' | 'visibleAt'>): Message {
    this.#sent += 1;
    const put = { ...message, id: `m${this.#sent}`, receives: 0 };
    this.#queue(url).push(put);
    return put;
  }

  #queue(url: string): Message[] {
    const queue = this.#waiting.get(url) ?? [];
    this.#waiting.set(url, queue);
    return queue;
  }

  #count(url: string, more: Partial<QueueCounts>): void {
    const known = this.counts(url);
    const sum = (name: keyof QueueCounts) => known[name] + (more[name] ?? 0);
    this.#counts.set(url, {
      ...{ sends: sum('sends'), receives: sum('receives'), deletes: sum('deletes') },
      ...{ requests: sum('requests'), messages: sum('messages'), bytes: sum('bytes') },
    });
  }
}

const chunks = (messages: readonly Pick<Message, 'body'>[]): number =>
  Math.max(1, Math.ceil(messages.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) / CHUNK_BYTES));
