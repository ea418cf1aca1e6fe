import { messageFault } from './message-fault.ts';
import type { OutgoingMessage, SendFailure } from './sender.ts';

/** A message with its place in the list that is to be sent. */
export interface Numbered {
  readonly index: number;
  readonly message: OutgoingMessage;
}

/** What a sending could not place, and which groups that stops. */
export class SendFailures {
  readonly #byIndex = new Map<number, SendFailure>();
  /** The first message that failed, by group. */
  readonly #stoppedGroups = new Map<string, number>();

  add({ index, message }: Numbered, reason: string, permanent: boolean): void {
    this.#byIndex.set(index, { index, reason, permanent });
    const { groupId } = message;
    if (groupId === undefined) return;
    this.#stoppedGroups.set(groupId, Math.min(index, this.#stoppedGroups.get(groupId) ?? index));
  }

  /** Counts a message as failed when one before it in its group has; returns whether that is so. */
  addIfBehind({ index, message }: Numbered): boolean {
    const first = message.groupId === undefined ? undefined : this.#stoppedGroups.get(message.groupId);
    if (first === undefined || first > index) return false;
    this.#byIndex.set(index, { index, reason: `message ${first} of its group failed`, permanent: false });
    return true;
  }

  /** In the order of the messages. */
  list(): readonly SendFailure[] {
    return [...this.#byIndex.values()].sort((a, b) => a.index - b.index);
  }
}

/** The messages that SQS may take; the others count as failed, with those behind them in their group. */
export function withoutFaulty(
  messages: readonly OutgoingMessage[],
  failures: SendFailures,
): readonly Numbered[] {
  return messages
    .map((message, index) => ({ index, message }))
    .filter((each) => {
      if (failures.addIfBehind(each)) return false;
      const fault = messageFault(each.message);
      if (fault !== undefined) failures.add(each, fault, true);
      return fault === undefined;
    });
}
