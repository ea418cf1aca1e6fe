import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

export interface RecordingSender extends QueueSender {
  /** The messages of each call. */
  readonly calls: (readonly OutgoingMessage[])[];
}

/** Returns a queue that records its messages; `answer` returns the failures of a call, or throws. */
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
