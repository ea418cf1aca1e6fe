import * as z from 'zod';
import { type ClusterName, podUid } from '#shared/eviction/identity.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import type { GonePod } from '#shared/state/history.ts';
import { clusterKey } from './node-eviction.ts';
import { pack } from './packed.ts';
import { PackedList } from './packed-list.ts';

/** Maximum of remembered pods, the latest ones. 5,000 take some 200 kB, and a ConfigMap holds 1 MiB. */
const MAX_PODS = 5_000;

const schema = z.array(z.object({ uid: z.string().transform(podUid), at: z.int() }));

/**
 * The times at which a cluster's evicted pods were removed, the latest ones. A ConfigMap holds them, because the
 * relay that records them does not know the pods' nodes. Rejects with `StoreError`.
 */
export class GonePods {
  readonly #kept: PackedList<GonePod>;

  /** `objects`: the ConfigMaps of Taintward's namespace. */
  constructor(objects: Objects, cluster: ClusterName) {
    this.#kept = new PackedList({
      objects,
      schema,
      name: `taintward-gone-${clusterKey(cluster)}`,
      key: 'pods',
    });
  }

  async add(pods: readonly GonePod[]): Promise<void> {
    if (pods.length === 0) return;
    await this.#kept.change((known) => pack([...known, ...pods].slice(-MAX_PODS)));
  }

  list(): Promise<readonly GonePod[]> {
    return this.#kept.read();
  }
}
