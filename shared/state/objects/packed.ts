import { gunzipSync, gzipSync } from 'node:zlib';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { StoreError } from '#shared/state/store.ts';
import { parseStored } from '#shared/state/stored.ts';
import { changeObject, orStoreError } from './change-object.ts';

export const pack = (value: object): string => gzipSync(JSON.stringify(value)).toString('base64');

/** Returns a packed value, whose shape is unchecked. Throws `StoreError` naming `what` if the text is damaged. */
export function unpack(text: string, what: string): unknown {
  try {
    return JSON.parse(gunzipSync(Buffer.from(text, 'base64')).toString());
  } catch (error) {
    throw new StoreError(
      `The stored ${what} cannot be read: it is not gzipped JSON in base64; was it changed by hand?`,
      {
        cause: error,
      },
    );
  }
}

export interface PackedListOptions<Item> {
  readonly objects: Objects;
  readonly name: string;
  readonly key: string;
  readonly schema: z.ZodType<readonly Item[]>;
}

/** A list that is stored in a ConfigMap, packed. Both methods reject with `StoreError`. */
export class PackedList<Item> {
  readonly #options: PackedListOptions<Item>;

  constructor(options: PackedListOptions<Item>) {
    this.#options = options;
  }

  /** Resolves with the whole list, which is empty if there is no object. */
  async read(): Promise<readonly Item[]> {
    const { objects, name } = this.#options;
    return this.#found(await orStoreError(objects.get(name))).items;
  }

  /** Writes the packed list that `decide` returns. `undefined`: nothing is written. */
  async change(decide: (items: readonly Item[]) => string | undefined): Promise<void> {
    const { objects, name, key } = this.#options;
    await changeObject(objects, name, (object) => {
      const { items, resourceVersion } = this.#found(object);
      const packed = decide(items);
      if (packed === undefined) return undefined;
      const metadata = { name, ...defined({ resourceVersion }) };
      const binaryData = { [key]: packed };
      return { apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData } as KubernetesObject;
    });
  }

  #found(object: unknown): { readonly resourceVersion?: string; readonly items: readonly Item[] } {
    if (object === undefined) return { items: [] };
    const { name, key, schema } = this.#options;
    const what = `ConfigMap ${name}`;
    const objectSchema = z.object({
      metadata: z.object({ resourceVersion: z.string() }),
      binaryData: z.object({ [key]: z.string() }),
    });
    const { metadata, binaryData } = parseStored(objectSchema, object, what);
    const items = parseStored(schema, unpack(binaryData[key] as string, what), what);
    return { resourceVersion: metadata.resourceVersion, items };
  }
}
