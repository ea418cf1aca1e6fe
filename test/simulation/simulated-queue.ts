import type { SQSRecord } from 'aws-lambda';
import { RETENTION_SECONDS } from '#shared/aws/queue-set.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import type { OutgoingMessage, SendFailure } from '#shared/state/sender.ts';
import { sqsRecord } from '#test/world/sqs-event.ts';
import type { Surroundings } from './process.ts';

export interface ReceivedMessage extends OutgoingMessage {
  /** True if the message was handled before, or set aside. */
  readonly again: boolean;
  /** The number of deliveries. */
  readonly receives: number;
}

interface Message extends ReceivedMessage {
  readonly id: string;
  readonly sentAt: number;
  /** For a message in flight, the time when it becomes visible again unless it is deleted. */
  visibleAt: number;
  receives: number;
}

export interface QueueSettings {
  readonly fifo: boolean;
  readonly visibilitySeconds: number;
  readonly maxReceives: number;
}

/** The delay after which a consumer polls again if it received nothing although messages exist. */
const POLL_MS = 20;
/** The time for which a FIFO queue remembers a deduplication ID. */
const DEDUPLICATION_MS = 5 * 60_000;
const MINUTE_MS = 60_000;
/** The longest delays of a duplicate: delivered once more, or redriven. */
const LATEST_DUPLICATES_MS = [1_000, 15 * MINUTE_MS, 3 * 24 * 60 * MINUTE_MS] as const;

/**
 * An SQS queue in memory. FIFO: messages of one group are delivered in order and one batch at a time. Otherwise in any order,
 * groups with fewer messages in flight first (fair queues). The queue simulates visibility, receives, retention, and dead
 * letters. In bad weather, handled messages are delivered again, up to days later.
 */
export class SimulatedQueue {
  /** The messages that the queue or a handler set aside. */
  readonly deadLetters: OutgoingMessage[] = [];
  /** Callbacks for each message that is sent, received, or handled, and for each that exceeded the queue's retention. */
  onAccepted: (message: OutgoingMessage) => void = () => undefined;
  onReceived: (message: ReceivedMessage) => void = () => undefined;
  onHandled: (message: OutgoingMessage) => void = () => undefined;
  onForgotten: (message: OutgoingMessage) => void = () => undefined;
  readonly #surroundings: Surroundings;
  readonly #settings: QueueSettings;
  #messages: Message[] = [];
  readonly #sentAt = new Map<string, number>();
  #wakers: (() => void)[] = [];
  #sent = 0;
  #alarm: ReturnType<Surroundings['clock']['setAlarm']> | undefined;

  constructor(surroundings: Surroundings, settings: QueueSettings) {
    this.#surroundings = surroundings;
    this.#settings = settings;
  }

  /** The current messages, in flight or not. `again`: the message was handled or set aside before. */
  get messages(): readonly Pick<Message, 'body' | 'again' | 'sentAt'>[] {
    return this.#messages;
  }

  accept(messages: readonly OutgoingMessage[]): readonly SendFailure[] {
    const { clock } = this.#surroundings;
    const failures: SendFailure[] = [];
    for (const [index, message] of messages.entries()) {
      const reason = messageFault(message);
      if (reason !== undefined) {
        failures.push({ index, reason, permanent: true });
        continue;
      }
      const { deduplicationId } = message;
      if (deduplicationId !== undefined) {
        if (clock.now() - (this.#sentAt.get(deduplicationId) ?? -Infinity) < DEDUPLICATION_MS) continue;
        this.#sentAt.set(deduplicationId, clock.now());
      }
      this.onAccepted(message);
      this.#add(message, clock.now() + (message.delaySeconds ?? 0) * 1000, false);
    }
    return failures;
  }

  /** Drops all messages, together with the process that held them. */
  lose(): void {
    this.#messages = [];
  }

  /** Delivers the dead letters again, as an operator does. */
  redrive(): void {
    for (const message of this.deadLetters.splice(0))
      this.#add(message, this.#surroundings.clock.now(), true);
  }

  #add(message: OutgoingMessage, visibleAt: number, again: boolean): void {
    this.#sent += 1;
    const sentAt = this.#surroundings.clock.now();
    this.#messages.push({ ...message, id: `m${this.#sent}`, sentAt, again, visibleAt, receives: 0 });
    this.#wakeAt(visibleAt);
  }

  /** Returns up to `count` messages, as soon as there is one; never to a dead process. */
  async receive(count: number, process: { readonly dead: boolean }): Promise<readonly SQSRecord[]> {
    for (;;) {
      const taken = this.#take(count);
      if (taken.length > 0) return taken;
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
      if (process.dead) await new Promise<never>(() => undefined);
    }
  }

  #take(count: number): readonly SQSRecord[] {
    this.#forget();
    const taken: Message[] = [];
    const blocked = new Set<string>();
    for (const message of this.#inTurn()) {
      const { groupId = '' } = message;
      if (taken.length === count || !this.#isReady(message) || blocked.has(groupId)) {
        if (this.#settings.fifo) blocked.add(groupId);
        continue;
      }
      if (message.receives >= this.#settings.maxReceives) {
        this.#drop(message);
        this.deadLetters.push(message);
        continue;
      }
      taken.push(message);
    }
    for (const message of taken) {
      message.receives += 1;
      this.onReceived(message);
      this.#hide(message, this.#settings.visibilitySeconds);
    }
    if (taken.length === 0) this.#wakeLater();
    return taken.map(({ id, body, groupId, receives }) => ({
      ...sqsRecord(body, { messageId: id, receives, ...(groupId === undefined ? {} : { groupId }) }),
      receiptHandle: `${id}/${receives}`,
    }));
  }

  #forget(): void {
    const now = this.#surroundings.clock.now();
    for (const message of this.#messages.filter(({ sentAt }) => now - sentAt > RETENTION_SECONDS * 1000)) {
      this.#drop(message);
      this.onForgotten(message);
    }
  }

  #isReady({ visibleAt }: Message): boolean {
    const { clock, random } = this.#surroundings;
    return visibleAt <= clock.now() && (this.#settings.fifo || !random.chance(0.2));
  }

  /** Returns the messages in the order of delivery. */
  #inTurn(): readonly Message[] {
    if (this.#settings.fifo) return [...this.#messages];
    const now = this.#surroundings.clock.now();
    const inHand = new Map<string | undefined, number>();
    for (const { groupId, visibleAt, receives } of this.#messages) {
      if (receives > 0 && visibleAt > now) inHand.set(groupId, (inHand.get(groupId) ?? 0) + 1);
    }
    const load = ({ groupId }: Message) => (groupId === undefined ? 0 : (inHand.get(groupId) ?? 0));
    return this.#messages.toSorted((a, b) => load(a) - load(b));
  }

  /** Changes the time when a received message becomes visible again; an expired receipt changes nothing. */
  retryIn(receiptHandle: string, seconds: number): void {
    const message = this.#received(receiptHandle);
    if (message) this.#hide(message, seconds);
  }

  delete(receiptHandle: string): void {
    const message = this.#received(receiptHandle);
    if (!message) return;
    this.#drop(message);
    this.onHandled(message);
    const { clock, random, weather } = this.#surroundings;
    if (weather.duplicate()) {
      const at = clock.now() + random.between(0, random.pick(LATEST_DUPLICATES_MS));
      clock.setAlarm(at, () => this.#add(message, at, true));
    }
    this.#wakeAt(clock.now());
  }

  #drop(message: Message): void {
    this.#messages.splice(this.#messages.indexOf(message), 1);
  }

  #received(receiptHandle: string): Message | undefined {
    return this.#messages.find(({ id, receives }) => `${id}/${receives}` === receiptHandle);
  }

  #hide(message: Message, seconds: number): void {
    message.visibleAt = this.#surroundings.clock.now() + seconds * 1000;
    this.#wakeAt(message.visibleAt);
  }

  /** Schedules a wake-up when no message is available. The first message of each group determines the time. */
  #wakeLater(): void {
    const groups = new Set<string>();
    const heads = this.#messages.filter(({ groupId }) => {
      if (!this.#settings.fifo || groupId === undefined) return true;
      const first = !groups.has(groupId);
      groups.add(groupId);
      return first;
    });
    const earliest = Math.min(...heads.map(({ visibleAt }) => visibleAt));
    if (earliest < Infinity) this.#wakeAt(Math.max(earliest, this.#surroundings.clock.now() + POLL_MS));
  }

  #wakeAt(at: number): void {
    if (this.#alarm && at >= this.#alarm.at) return;
    if (this.#alarm) this.#alarm.off = true;
    this.#alarm = this.#surroundings.clock.setAlarm(at, () => {
      this.#alarm = undefined;
      const wakers = this.#wakers;
      this.#wakers = [];
      for (const wake of wakers) wake();
    });
  }
}
