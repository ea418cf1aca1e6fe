import type { DeadLetter, DeadLetterBox } from '#shared/operations/fleet/dead-letters.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Dead letters of a deployment, in memory, numbered in the order of arrival. */
export class KeptLetters implements DeadLetterBox {
  readonly #clock: Clock;
  #kept: readonly DeadLetter[] = [];
  #redriven: readonly DeadLetter[] = [];
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(queue: string, { body }: { readonly body: string }, reason: string): void {
    this.#last += 1;
    this.#kept = [...this.#kept, { id: `${this.#last}`, queue, at: this.#clock.now(), reason, body }];
  }

  /** Returns the dead letters that were redriven since the last call. */
  takeRedriven(): readonly DeadLetter[] {
    const redriven = this.#redriven;
    this.#redriven = [];
    return redriven;
  }

  count = async (): Promise<ReadonlyMap<string, number>> => {
    const queues = Map.groupBy(this.#kept, ({ queue }) => queue);
    return new Map([...queues].map(([queue, { length }]) => [queue, length]));
  };

  list = async (limit: number, queue?: string): Promise<readonly DeadLetter[]> =>
    this.#kept.filter((letter) => (queue ?? letter.queue) === letter.queue).slice(0, limit);

  redrive = async (queue: string): Promise<number> => {
    const isMeant = (letter: DeadLetter) => letter.queue === queue;
    const sent = this.#kept.filter(isMeant);
    this.#kept = this.#kept.filter((letter) => !isMeant(letter));
    this.#redriven = [...this.#redriven, ...sent];
    return sent.length;
  };
}
