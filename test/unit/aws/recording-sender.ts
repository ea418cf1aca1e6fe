import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

export interface RecordingSender extends QueueSender {
  /** What was sent, call by call. */
  readonly calls: (readonly OutgoingMessage[])[];
}

/** A queue that keeps what it is sent; `answer` says what of a call failed, or throws. */
export function recordingSender(
  answer: (messages: readonly OutgoingMessage[], call: number) => readonly SendFailure[] = () => [],
): RecordingSender {
  const calls: (readonly OutgoingMessage[])[] = [];
  return {
    calls,
    async send(messages) {
      calls.push(messages);
      return answer(messages, calls.length);
    },
  };
}
