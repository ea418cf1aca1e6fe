import * as z from 'zod';
import type { Objects } from '#shared/kubernetes/objects.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';
import { PackedList, pack } from './packed.ts';

/** A ConfigMap holds 1 MiB. Messages wait here for seconds. */
const MAX_CHARS = 900_000;

const schema = z.array(z.string().min(1));

/**
 * Operators' requests, as messages of `evictions-due`, in a ConfigMap until the leader takes them. Both methods reject
 * with `StoreError`.
 */
export class ConfigMapQueue implements QueueSender {
  readonly #name: string;
  readonly #waiting: PackedList<string>;

  /** `objects`: the ConfigMaps of Taintward's namespace, or their equivalents in a state directory. */
  constructor(objects: Objects, name: string) {
    this.#name = name;
    this.#waiting = new PackedList({ objects, schema, name: this.#name, key: 'messages' });
  }

  /** Enqueues all of the messages, or none when there is no room for all. */
  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    if (messages.length === 0) return [];
    let hasRoom = true;
    await this.#waiting.change((bodies) => {
      const packed = pack([...bodies, ...messages.map(({ body }) => body)]);
      hasRoom = packed.length <= MAX_CHARS;
      return hasRoom ? packed : undefined;
    });
    if (hasRoom) return [];
    const reason = `the ConfigMap ${this.#name} is full of earlier requests until the leading replica takes them`;
    return messages.map((_, index) => ({ index, reason, permanent: false }));
  }

  /** If the process ends before it handled the messages, the operator has to repeat the requests. */
  async take(): Promise<readonly OutgoingMessage[]> {
    if ((await this.#waiting.read()).length === 0) return [];
    let taken: readonly string[] = [];
    await this.#waiting.change((bodies) => {
      taken = bodies;
      return taken.length === 0 ? undefined : pack([]);
    });
    return taken.map((body) => ({ body }));
  }
}
