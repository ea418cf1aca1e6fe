import type { SQSRecord } from 'aws-lambda';
import type { OutgoingMessage, SendFailure } from '#shared/queues/sender.ts';
import { sqsRecord } from '#test/world/sqs-event.ts';
import type { Surroundings } from './process.ts';

interface Message extends OutgoingMessage {
  readonly id: string;
  /** Of a message that is being handled, when it comes back unless it is deleted. */
  visibleAt: number;
  receives: number;
}

export interface QueueSettings {
  readonly visibilitySeconds: number;
  readonly maxReceives: number;
}

/** How soon somebody asks again who got nothing though there are messages. */
const POLL_MS = 20;
/** For how long a FIFO queue knows a deduplication id. */
const DEDUPLICATION_MS = 5 * 60_000;
/** A duplicate comes up to so much later: redriven, or just delivered once more. */
const LATEST_DUPLICATE_MS = 15 * 60_000;

/**
 * An SQS queue in memory: messages of one group in order and one batch at a time, visibility, receives, dead
 * letters. A message without a deduplication id is of a standard queue, and comes in any order. In bad weather handled messages come again.
 */
export class SimulatedQueue {
  readonly deadLetters: OutgoingMessage[] = [];
  readonly #surroundings: Surroundings;
  readonly #settings: QueueSettings;
  #messages: Message[] = [];
  readonly #sentAt = new Map<string, number>();
  #wakers: (() => void)[] = [];
  #sent = 0;
  #wakingAt = Infinity;

  constructor(surroundings: Surroundings, settings: QueueSettings) {
    this.#surroundings = surroundings;
    this.#settings = settings;
  }

  /** Messages there are, in flight or not. */
  get size(): number {
    return this.#messages.length;
  }

  /** Messages ever taken. */
  get sent(): number {
    return this.#sent;
  }

  accept(messages: readonly OutgoingMessage[]): readonly SendFailure[] {
    const { clock } = this.#surroundings;
    for (const message of messages) {
      const { deduplicationId } = message;
      if (deduplicationId !== undefined) {
        if (clock.now() - (this.#sentAt.get(deduplicationId) ?? -Infinity) < DEDUPLICATION_MS) continue;
        this.#sentAt.set(deduplicationId, clock.now());
      }
      this.#add(message, clock.now() + (message.delaySeconds ?? 0) * 1000);
    }
    return [];
  }

  #add(message: OutgoingMessage, visibleAt: number): void {
    this.#sent += 1;
    this.#messages.push({ ...message, id: `m${this.#sent}`, visibleAt, receives: 0 });
    this.#wakeAt(visibleAt);
  }

  /** Up to `count` messages, as soon as there is one. */
  async receive(count: number): Promise<readonly SQSRecord[]> {
    for (;;) {
      const taken = this.#take(count);
      if (taken.length > 0) return taken;
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  #take(count: number): readonly SQSRecord[] {
    const { clock, random } = this.#surroundings;
    const now = clock.now();
    const taken: Message[] = [];
    const blocked = new Set<string>();
    for (const message of [...this.#messages]) {
      const groupId = message.deduplicationId === undefined ? undefined : message.groupId;
      const ready = message.visibleAt <= now && !(groupId !== undefined && blocked.has(groupId));
      if (!ready || taken.length === count || (groupId === undefined && random.chance(0.2))) {
        if (groupId !== undefined) blocked.add(groupId);
        continue;
      }
      if (message.receives >= this.#settings.maxReceives) {
        this.#messages = this.#messages.filter((other) => other !== message);
        this.deadLetters.push(message);
        continue;
      }
      taken.push(message);
    }
    for (const message of taken) {
      message.receives += 1;
      this.#hide(message, this.#settings.visibilitySeconds);
    }
    if (taken.length === 0) this.#wakeLater();
    return taken.map(({ id, body, groupId, receives }) => ({
      ...sqsRecord(body, { messageId: id, receives, ...(groupId === undefined ? {} : { groupId }) }),
      receiptHandle: `${id}/${receives}`,
    }));
  }

  /** Changes when a received message is seen again; a receipt that is no longer good changes nothing. */
  retryIn(receiptHandle: string, seconds: number): void {
    const message = this.#received(receiptHandle);
    if (message) this.#hide(message, seconds);
  }

  delete(receiptHandle: string): void {
    const message = this.#received(receiptHandle);
    if (!message) return;
    this.#messages = this.#messages.filter((other) => other !== message);
    const { clock, random, weather } = this.#surroundings;
    if (weather.duplicate()) {
      const at = clock.now() + random.between(0, LATEST_DUPLICATE_MS);
      clock.setAlarm(at, () => this.#add(message, at));
    }
    this.#wakeAt(clock.now());
  }

  #received(receiptHandle: string): Message | undefined {
    return this.#messages.find(({ id, receives }) => `${id}/${receives}` === receiptHandle);
  }

  #hide(message: Message, seconds: number): void {
    message.visibleAt = this.#surroundings.clock.now() + seconds * 1000;
    this.#wakeAt(message.visibleAt);
  }

  /** There is nothing to take for now. Of a group, the first message decides when there is. */
  #wakeLater(): void {
    const groups = new Set<string>();
    const heads = this.#messages.filter(({ groupId, deduplicationId }) => {
      if (groupId === undefined || deduplicationId === undefined) return true;
      const first = !groups.has(groupId);
      groups.add(groupId);
      return first;
    });
    const earliest = Math.min(...heads.map(({ visibleAt }) => visibleAt));
    if (earliest < Infinity) this.#wakeAt(Math.max(earliest, this.#surroundings.clock.now() + POLL_MS));
  }

  #wakeAt(at: number): void {
    if (at >= this.#wakingAt) return;
    this.#wakingAt = at;
    this.#surroundings.clock.setAlarm(at, () => {
      this.#wakingAt = Infinity;
      const wakers = this.#wakers;
      this.#wakers = [];
      for (const wake of wakers) wake();
    });
  }
}
