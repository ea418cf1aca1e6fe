import type { OutgoingMessage, SendFailure } from '#shared/state/sender.ts';
import { MAX_DELAY_SECONDS, MAX_ID_CHARACTERS, MAX_MESSAGE_ATTRIBUTES, MAX_MESSAGE_BYTES } from './limits.ts';

/** The data type of every attribute that is sent. */
export const ATTRIBUTE_TYPE = 'String';

const FORBIDDEN_CHARACTER = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const ID = new RegExp(`^[!-~]{1,${MAX_ID_CHARACTERS}}$`);

/** Bytes that count against SQS's limits: the body, and each attribute's name, type and value, in UTF-8. */
export function messageBytes({ body, attributes = {} }: OutgoingMessage): number {
  const texts = Object.entries(attributes).flatMap(([name, value]) => [name, ATTRIBUTE_TYPE, value]);
  return [body, ...texts].reduce((bytes, text) => bytes + Buffer.byteLength(text), 0);
}

/** Why SQS would never accept a message. Check before sending: SQS may reject a whole call for one invalid message. */
export function messageFault(message: OutgoingMessage): string | undefined {
  const { body, groupId, deduplicationId, delaySeconds, attributes = {} } = message;
  const bytes = messageBytes(message);
  if (bytes > MAX_MESSAGE_BYTES) {
    return `the message has ${bytes} bytes, SQS takes ${MAX_MESSAGE_BYTES} with attributes: split it`;
  }
  if (body === '') return 'body is empty';
  if (FORBIDDEN_CHARACTER.test(body)) return 'body holds a character that SQS does not take: escape it';
  if (groupId !== undefined && !ID.test(groupId)) return idFault('groupId');
  if (deduplicationId !== undefined && !ID.test(deduplicationId)) return idFault('deduplicationId');
  if (delaySeconds !== undefined && !isDelay(delaySeconds)) {
    return `delaySeconds is ${delaySeconds}, SQS takes whole seconds from 0 to ${MAX_DELAY_SECONDS}`;
  }
  const entries = Object.entries(attributes);
  if (entries.length > MAX_MESSAGE_ATTRIBUTES) {
    return `attributes are ${entries.length}, SQS takes ${MAX_MESSAGE_ATTRIBUTES}`;
  }
  const bad = entries.find(([, value]) => value === '' || FORBIDDEN_CHARACTER.test(value));
  return bad && `attribute ${bad[0]} is empty or holds a character that SQS does not take`;
}

const idFault = (field: string) =>
  `${field} must be 1 to ${MAX_ID_CHARACTERS} ASCII letters, digits and punctuation: hash it`;

const isDelay = (seconds: number) =>
  Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_DELAY_SECONDS;

export interface Numbered {
  readonly index: number;
  readonly message: OutgoingMessage;
}

/** The messages that could not be sent, and the groups that they stop. */
export class SendFailures {
  readonly #byIndex = new Map<number, SendFailure>();
  /** The first message that failed, by group. */
  readonly #stoppedGroups = new Map<string, number>();

  add({ index, message }: Numbered, reason: string, permanent: boolean): void {
    this.#byIndex.set(index, { index, reason, permanent });
    const groupId = orderedGroup(message);
    if (groupId === undefined) return;
    this.#stoppedGroups.set(groupId, Math.min(index, this.#stoppedGroups.get(groupId) ?? index));
  }

  /** Counts a message as failed when an earlier message of its group failed. Returns whether it did. */
  addIfBehind({ index, message }: Numbered): boolean {
    const groupId = orderedGroup(message);
    const first = groupId === undefined ? undefined : this.#stoppedGroups.get(groupId);
    if (first === undefined || first > index) return false;
    this.#byIndex.set(index, { index, reason: `message ${first} of its group failed`, permanent: false });
    return true;
  }

  list(): readonly SendFailure[] {
    return [...this.#byIndex.values()].sort((a, b) => a.index - b.index);
  }
}

/** Returns the group in which a message keeps its order. Only a FIFO queue's message has a deduplication ID. */
const orderedGroup = ({ groupId, deduplicationId }: OutgoingMessage) =>
  deduplicationId === undefined ? undefined : groupId;

/** Returns the messages that SQS may accept. Others count as failed, with those behind them in their group. */
export function withoutFaulty(
  messages: readonly OutgoingMessage[],
  failures: SendFailures,
): readonly Numbered[] {
  return messages
    .map((message, index) => ({ index, message }))
    .filter((entry) => {
      if (failures.addIfBehind(entry)) return false;
      const fault = messageFault(entry.message);
      if (fault !== undefined) failures.add(entry, fault, true);
      return fault === undefined;
    });
}

/** Characters that queues reject but JSON leaves unescaped. JSON escapes all other forbidden ones. */
const FORBIDDEN = /[\ufffe\uffff]/g;

/** Encodes a value as JSON that SQS accepts as a message body, regardless of the characters in names. */
export const messageJson = (value: object): string =>
  JSON.stringify(value).replace(FORBIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
