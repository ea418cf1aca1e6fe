import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

/** A queue that keeps sent messages, until it is set to fail. */
export class ScriptedQueue implements QueueSender {
  readonly sent: OutgoingMessage[] = [];
  /** Thrown instead of sending. */
  unreachable: Error | undefined;
  /** Returned for every message. */
  refusal: Omit<SendFailure, 'index'> | undefined;

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    // Shows callers that do not wait.
    await nextTurn();
    if (this.unreachable) throw this.unreachable;
    const { refusal } = this;
    if (refusal) return messages.map((_, index) => ({ index, ...refusal }));
    this.sent.push(...messages);
    return [];
  }
}
