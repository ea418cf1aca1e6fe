import type { DeadLetters } from '#functions/local/dead-letters.ts';
import type { DeadLetterBox } from './dead-letters.ts';

/** The dead letters in the state directory of an `npm start`. Every method rejects with `StoreError`. */
export function localDeadLetters(letters: DeadLetters): DeadLetterBox {
  const of = (queue: string | undefined) =>
    letters.list().filter((letter) => (queue ?? letter.queue) === letter.queue);
  return {
    async count() {
      const queues = Map.groupBy(letters.list(), ({ queue }) => queue);
      return new Map([...queues].map(([queue, { length }]) => [queue, length]));
    },
    list: async (limit, queue) =>
      of(queue)
        .slice(0, limit)
        .map(({ id, queue: from, at, reason, body }) => ({ id: `${id}`, queue: from, at, reason, body })),
    redrive: async (queue) => of(queue).filter(({ id }) => letters.redrive(id)).length,
    redriveOne: async ({ id }) => void letters.redrive(Number(id)),
  };
}
