import * as z from 'zod';
import type { Objects } from '#shared/kubernetes/objects.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';
import { pack } from './packed.ts';
import { PackedList } from './packed-list.ts';

/** A ConfigMap holds 1 MiB; what waits here does so for seconds. */
const MAX_CHARS = 900_000;

const schema = z.array(z.string().min(1));

/**
 * What operators ask of the process that evicts: messages as on `evictions-due` wait in a ConfigMap of our namespace until whoever leads
 * takes them. Both methods reject with `StoreError`.
 */
export class ConfigMapQueue implements QueueSender {
  readonly #name: string;
  readonly #waiting: PackedList<string>;

  /** `objects`: the ConfigMaps of our namespace, or what stands for them in a state directory. */
  constructor(objects: Objects, name: string) {
    this.#name = name;
    this.#waiting = new PackedList({ objects, schema, name: this.#name, key: 'messages' });
  }

  /** Takes all of the messages, or none when there is no room for all. */
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

  /** What waited, which waits no longer. Should who takes it end before it is done, it has to be asked again. */
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
