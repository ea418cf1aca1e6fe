import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/queues/sender.ts';
import { parseStored } from '#shared/store/stored.ts';
import { changeObject } from './change-object.ts';
import { clusterKey } from './node-eviction.ts';
import { orStoreError } from './object-store-error.ts';
import { pack, unpack } from './packed.ts';

/** A ConfigMap holds 1 MiB; what waits here does so for seconds. */
const MOST_CHARS = 900_000;

const bodiesSchema = z.array(z.string().min(1));
const objectSchema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  binaryData: z.object({ messages: z.string() }),
});

/** What waits, and of which version of the object. */
interface Waiting {
  readonly resourceVersion?: string;
  readonly bodies: readonly string[];
}

/**
 * What operators ask of `evictions-due`, which is in the memory of another process: messages wait in a ConfigMap of our namespace
 * until whoever leads takes them. Both methods reject with `StoreError`.
 */
export class AskedWork implements QueueSender {
  readonly #objects: Objects;
  readonly #cluster: ClusterName;

  /** `objects`: the ConfigMaps of our namespace. */
  constructor(objects: Objects, cluster: ClusterName) {
    this.#objects = objects;
    this.#cluster = cluster;
  }

  /** Takes all of the messages, or none when there is no room for all. */
  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    if (messages.length === 0) return [];
    let hasRoom = true;
    await changeObject(this.#objects, this.#name, (object) => {
      const { bodies, resourceVersion } = this.#read(object);
      const packed = pack([...bodies, ...messages.map(({ body }) => body)]);
      hasRoom = packed.length <= MOST_CHARS;
      return hasRoom ? this.#object(packed, resourceVersion) : undefined;
    });
    if (hasRoom) return [];
    const reason = `what was asked before fills the ConfigMap ${this.#name}, until the replica that leads takes it`;
    return messages.map((_, index) => ({ index, reason, permanent: false }));
  }

  /** What waited, which waits no longer. Should who takes it end before it is done, it has to be asked again. */
  async take(): Promise<readonly OutgoingMessage[]> {
    const { bodies } = this.#read(await orStoreError(this.#objects.get(this.#name)));
    if (bodies.length === 0) return [];
    let taken: readonly string[] = [];
    await changeObject(this.#objects, this.#name, (object) => {
      const found = this.#read(object);
      taken = found.bodies;
      return taken.length === 0 ? undefined : this.#object(pack([]), found.resourceVersion);
    });
    return taken.map((body) => ({ body }));
  }

  #read(object: unknown): Waiting {
    if (object === undefined) return { bodies: [] };
    const what = `ConfigMap ${this.#name}`;
    const { metadata, binaryData } = parseStored(objectSchema, object, what);
    const bodies = parseStored(bodiesSchema, unpack(binaryData.messages, what), what);
    return { resourceVersion: metadata.resourceVersion, bodies };
  }

  get #name(): string {
    return `taintward-asked-${clusterKey(this.#cluster)}`;
  }

  #object(packed: string, resourceVersion: string | undefined): KubernetesObject {
    const metadata = { name: this.#name, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    const binaryData = { messages: packed };
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData } as KubernetesObject;
  }
}
