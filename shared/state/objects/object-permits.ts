import * as z from 'zod';
import { type ClusterName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import { counts, grantPermits, type PermitLimit } from '#shared/eviction/permits.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { clusterKey } from './node-eviction.ts';
import { PackedList, pack } from './packed.ts';

const schema = z.array(z.object({ workload: z.string(), uid: z.string().transform(podUid), at: z.int() }));

/** Permits of all workloads of a cluster in one ConfigMap: some 10,000 at a time. */
export class ObjectPermits implements Permits {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  async take(
    cluster: ClusterName,
    workload: string,
    pods: readonly PodUid[],
    limit: PermitLimit,
    now: EpochMs,
  ): Promise<readonly EpochMs[]> {
    const name = `taintward-permits-${clusterKey(cluster)}`;
    const kept = new PackedList({ objects: this.#objects, schema, name, key: 'permits' });
    let moments: readonly EpochMs[] = [];
    await kept.change((all) => {
      const held = all.filter((each) => each.workload === workload);
      const granted = grantPermits(held, pods, limit, now);
      ({ moments } = granted);
      if (!moments.includes(now)) return undefined;
      const others = all.filter((each) => each.workload !== workload && counts(each, limit, now));
      return pack([...others, ...granted.permits.map(({ uid, at }) => ({ workload, uid, at }))]);
    });
    return moments;
  }
}
