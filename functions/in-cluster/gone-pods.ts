import * as z from 'zod';
import { type ClusterName, podUid } from '#shared/eviction/identity.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import type { GonePod } from '#shared/store/history.ts';
import { parseStored } from '#shared/store/stored.ts';
import { changeObject } from './change-object.ts';
import { clusterKey } from './node-eviction.ts';
import { orStoreError } from './object-store-error.ts';
import { pack, unpack } from './packed.ts';

/** Of more, the oldest are forgotten: 5,000 take some 200 kB, and a ConfigMap holds 1 MiB. */
const MOST_PODS = 5_000;

const listSchema = z.array(z.object({ uid: z.string().transform(podUid), at: z.int() }));
const objectSchema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  binaryData: z.object({ pods: z.string() }),
});

/**
 * When evicted pods of a cluster were gone, those that went last: in a ConfigMap of ours, for whoever notes it knows no nodes.
 * Rejects with `StoreError`.
 */
export class GonePods {
  readonly #objects: Objects;
  readonly #cluster: ClusterName;

  /** `objects`: the ConfigMaps of our namespace. */
  constructor(objects: Objects, cluster: ClusterName) {
    this.#objects = objects;
    this.#cluster = cluster;
  }

  async add(pods: readonly GonePod[]): Promise<void> {
    if (pods.length === 0) return;
    await changeObject(this.#objects, this.#name, (object) => {
      const { known, resourceVersion } = this.#read(object);
      return this.#object([...known, ...pods].slice(-MOST_PODS), resourceVersion);
    });
  }

  async list(): Promise<readonly GonePod[]> {
    return this.#read(await orStoreError(this.#objects.get(this.#name))).known;
  }

  #read(object: unknown): { readonly resourceVersion?: string; readonly known: readonly GonePod[] } {
    if (object === undefined) return { known: [] };
    const what = `ConfigMap ${this.#name}`;
    const { metadata, binaryData } = parseStored(objectSchema, object, what);
    const known = parseStored(listSchema, unpack(binaryData.pods, what), what);
    return { resourceVersion: metadata.resourceVersion, known };
  }

  get #name(): string {
    return `taintward-gone-${clusterKey(this.#cluster)}`;
  }

  #object(pods: readonly GonePod[], resourceVersion: string | undefined): KubernetesObject {
    const metadata = { name: this.#name, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      binaryData: { pods: pack(pods) },
    } as KubernetesObject;
  }
}
