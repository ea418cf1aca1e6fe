import { randomUUID } from 'node:crypto';
import type { SQSRecord } from 'aws-lambda';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { MAX_VISIBILITY_SECONDS } from '#shared/queues/limits.ts';
import { ATTRIBUTE_TYPE, SendFailures, withoutFaulty } from '#shared/queues/message-fault.ts';
import { type QueueSpec, visibilitySeconds } from '#shared/queues/queue-set.ts';
import type { OutgoingMessage, QueueSender, SendFailure, VisibilityControl } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Alarm } from '#shared/time/alarm.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { DeadLetters } from './dead-letters.ts';

/** For how long a FIFO queue knows a deduplication id, as SQS does. */
const DEDUPLICATION_MS = 5 * 60_000;
/** Characters of all bodies in one queue: beyond, senders are refused, and keep what they have until there is room. */
const MAX_HELD_CHARACTERS = 32 * 1024 * 1024;

/** What stands in a record where AWS names region and sender. */
const HERE = 'local';

export interface EmbeddedQueueDeps {
  readonly spec: QueueSpec;
  readonly deadLetters: Pick<DeadLetters, 'add'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Message {
  readonly content: OutgoingMessage;
  readonly id: string;
  /** Its place among all messages of the queue. */
  readonly sequence: number;
  readonly groupId: string;
  readonly sentAt: EpochMs;
  receives: number;
  firstReceivedAt: EpochMs;
  /** While it is in flight: what it was handed over with, and what ends its time. */
  receipt: string;
  alarm: Alarm | undefined;
}

interface Group {
  readonly id: string;
  /** What may be handed over, in order. */
  readonly visible: Message[];
  inFlight: number;
}

/**
 * A queue in this process that keeps what SQS promises: groups in order and one at a time (FIFO), deduplication, delays,
 * visibility, receives, dead letters. Delays and visibility are exact to the millisecond. It holds its messages in
 * memory: what a killed process held is told anew by the store and the clusters.
 */
export class EmbeddedQueue implements QueueSender, VisibilityControl {
  readonly spec: QueueSpec;
  readonly #deps: EmbeddedQueueDeps;
  readonly #groups = new Map<string, Group>();
  /** Groups with something to hand over; the first has waited longest. */
  readonly #ready = new Set<Group>();
  /** By receipt. */
  readonly #inFlight = new Map<string, Message>();
  /** When each deduplication id is forgotten, soonest first. */
  readonly #knownIds = new Map<string, EpochMs>();
  #sent = 0;
  #heldCharacters = 0;
  #held = 0;
  #whenVisible: () => void = () => undefined;

  constructor(deps: EmbeddedQueueDeps) {
    this.spec = deps.spec;
    this.#deps = deps;
  }

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    const failures = new SendFailures();
    for (const each of withoutFaulty(messages, failures)) {
      if (failures.addIfBehind(each)) continue;
      if (this.#heldCharacters < MAX_HELD_CHARACTERS) this.#accept(each.message);
      else failures.add(each, `queue ${this.spec.name} is full: its handler cannot keep up`, false);
    }
    return failures.list();
  }

  async retryIn(messages: Parameters<VisibilityControl['retryIn']>[0]): Promise<void> {
    for (const { receiptHandle, seconds } of messages) {
      const message = this.#inFlight.get(receiptHandle);
      if (message) this.#hide(message, Math.min(Math.max(seconds, 0), MAX_VISIBILITY_SECONDS));
      else {
        const reason = 'the message was handled, or seen again, before';
        this.#deps.log.warn('visibility.unchanged', { queue: this.spec.name, reason });
      }
    }
  }

  /** How many messages it holds, those in flight and delayed included. */
  get size(): number {
    return this.#held;
  }

  /** Calls `listener` from now on whenever there may be something to receive. */
  onVisible(listener: () => void): void {
    this.#whenVisible = listener;
  }

  /**
   * Up to `max` messages, all of one group, which are in flight then: of a standard queue's groups, that with the fewest
   * in flight, so that none keeps the others waiting. What was received too often becomes a dead letter instead.
   */
  receive(max: number): readonly SQSRecord[] {
    for (let group = this.#nextGroup(); group; group = this.#nextGroup()) {
      const received: Message[] = [];
      while (received.length < max && !this.#isBlocked(group)) {
        const message = group.visible.shift();
        if (!message) break;
        if (message.receives < this.spec.maxReceiveCount) received.push(message);
        else this.#bury(message, group);
      }
      for (const message of received) this.#handOver(message, group);
      this.#ready.delete(group);
      this.#refresh(group);
      if (received.length > 0) return received.map((message) => this.#toRecord(message));
    }
    return [];
  }

  /** Ends a message that was handled. `false`: it was seen again meanwhile, and stays. */
  delete(receiptHandle: string): boolean {
    const message = this.#inFlight.get(receiptHandle);
    if (!message) return false;
    this.#held -= 1;
    this.#heldCharacters -= message.content.body.length;
    this.#endFlight(message);
    return true;
  }

  #accept(content: OutgoingMessage): void {
    if (this.#isDuplicate(content)) return;
    const now = this.#deps.clock.now();
    // Equivalent mutant (StringLiteral): Messages without a group are one group, whatever it is called.
    const { groupId = '', delaySeconds = 0, body } = content;
    this.#sent += 1;
    this.#held += 1;
    this.#heldCharacters += body.length;
    const message: Message = {
      content,
      groupId,
      id: randomUUID(),
      sequence: this.#sent,
      sentAt: now,
      receives: 0,
      firstReceivedAt: 0,
      // Equivalent mutant (StringLiteral): A message has a receipt of its own before anybody asks for it.
      receipt: '',
      alarm: undefined,
    };
    if (delaySeconds === 0) this.#show(message);
    else new Alarm(this.#deps.clock, now + delaySeconds * 1000, () => this.#show(message));
  }

  #isDuplicate({ groupId, deduplicationId }: OutgoingMessage): boolean {
    if (!this.spec.fifo || deduplicationId === undefined) return false;
    const now = this.#deps.clock.now();
    for (const [id, forgottenAt] of this.#knownIds) {
      if (forgottenAt > now) break;
      this.#knownIds.delete(id);
    }
    const id = `${groupId} ${deduplicationId}`;
    if (this.#knownIds.has(id)) return true;
    this.#knownIds.set(id, now + DEDUPLICATION_MS);
    return false;
  }

  #nextGroup(): Group | undefined {
    let next: Group | undefined;
    for (const group of this.#ready) {
      if (!next || group.inFlight < next.inFlight) next = group;
      // Equivalent mutant (ConditionalExpression): None has fewer in flight: looking at the others spares
      // nothing.
      if (next.inFlight === 0) break;
    }
    return next;
  }

  #handOver(message: Message, group: Group): void {
    const now = this.#deps.clock.now();
    if (message.receives === 0) message.firstReceivedAt = now;
    message.receives += 1;
    this.#startFlight(message, group);
  }

  /** In flight a message is hidden for as long as its queue says, and a FIFO queue's group with it. */
  #startFlight(message: Message, group: Group): void {
    message.receipt = `${message.id}/${message.receives}`;
    this.#inFlight.set(message.receipt, message);
    group.inFlight += 1;
    this.#hide(message, visibilitySeconds(this.spec));
  }

  #hide(message: Message, seconds: number): void {
    const seenAgain = () => {
      this.#endFlight(message);
      this.#show(message);
    };
    message.alarm?.cancel();
    message.alarm = undefined;
    if (seconds === 0) seenAgain();
    else message.alarm = new Alarm(this.#deps.clock, this.#deps.clock.now() + seconds * 1000, seenAgain);
  }

  #endFlight(message: Message): void {
    message.alarm?.cancel();
    message.alarm = undefined;
    this.#inFlight.delete(message.receipt);
    const group = this.#group(message.groupId);
    group.inFlight -= 1;
    this.#refresh(group);
  }

  /** Puts a message into its place: behind those sent before it, of which few are back before it. */
  #show(message: Message): void {
    const group = this.#group(message.groupId);
    const { visible } = group;
    let place = visible.length;
    // Equivalent mutants (ConditionalExpression, EqualityOperator): A FIFO queue delays no single message, so
    // a new one is the last of its group.
    if (message.receives > 0 && this.spec.fifo) {
      // Equivalent mutant (EqualityOperator): No other message has the same sequence.
      place = visible.findIndex(({ sequence }) => sequence > message.sequence);
      if (place < 0) place = visible.length;
    }
    visible.splice(place, 0, message);
    this.#refresh(group);
  }

  #bury(message: Message, group: Group): void {
    const { deadLetters, log } = this.#deps;
    const { id: messageId, content, receives } = message;
    const { name: queue } = this.spec;
    try {
      deadLetters.add(queue, content, `received ${receives} times and never handled`);
      this.#held -= 1;
      this.#heldCharacters -= content.body.length;
      log.error('message.dead-lettered', { queue, messageId, receives });
    } catch (error) {
      log.error('dead-letter.unsaved', { queue, messageId, reason: error });
      this.#startFlight(message, group);
    }
  }

  #group(id: string): Group {
    const known = this.#groups.get(id);
    if (known) return known;
    const group: Group = { id, visible: [], inFlight: 0 };
    this.#groups.set(id, group);
    return group;
  }

  #isBlocked({ inFlight }: Group): boolean {
    return this.spec.fifo && inFlight > 0;
  }

  #refresh(group: Group): void {
    if (group.visible.length > 0 && !this.#isBlocked(group)) {
      this.#ready.add(group);
      this.#whenVisible();
      // Equivalent mutants (ConditionalExpression, CallExpression): An empty group that stays is as good as a
      // new one. It costs memory, which no test measures.
    } else if (group.visible.length + group.inFlight === 0) this.#groups.delete(group.id);
  }

  #toRecord({ content, id, sequence, sentAt, receives, firstReceivedAt, receipt }: Message): SQSRecord {
    const { body, groupId, deduplicationId, attributes = {} } = content;
    const messageAttributes = Object.entries(attributes).map(([name, stringValue]) => [
      name,
      { stringValue, stringListValues: [], binaryListValues: [], dataType: ATTRIBUTE_TYPE },
    ]);
    return {
      messageId: id,
      receiptHandle: receipt,
      body,
      attributes: {
        ApproximateReceiveCount: String(receives),
        SentTimestamp: String(sentAt),
        SenderId: HERE,
        ApproximateFirstReceiveTimestamp: String(firstReceivedAt),
        ...(groupId === undefined ? {} : { MessageGroupId: groupId }),
        ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
        ...(this.spec.fifo ? { SequenceNumber: String(sequence) } : {}),
      },
      messageAttributes: Object.fromEntries(messageAttributes),
      md5OfBody: '',
      eventSource: 'aws:sqs',
      eventSourceARN: `arn:aws:sqs:${HERE}:000000000000:${this.spec.name}`,
      awsRegion: HERE,
    };
  }
}
