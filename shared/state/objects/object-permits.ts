import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { type Permits, permitItem, type WorkloadLimit } from '#shared/state/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { clusterKey } from './node-eviction.ts';
import { PackedList, pack } from './packed.ts';

const schema = z.array(z.object({ key: z.string(), neededTo: z.int(), permits: z.unknown() }));

/** Permits of a cluster in one ConfigMap: some 10,000 at a time. */
export class ObjectPermits implements Permits {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  async take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    limit: Pace | WorkloadLimit,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    const name = `taintward-permits-${clusterKey(cluster)}`;
    const kept = new PackedList({ objects: this.#objects, schema, name, key: 'permits' });
    const { key, neededTo, grant } = permitItem(pods, limit, now);
    let turns: readonly (Turn | undefined)[] = [];
    await kept.change((items) => {
      const granted = grant(items.find((item) => item.key === key)?.permits);
      ({ turns } = granted);
      if (!granted.permits) return undefined;
      const others = items.filter((item) => item.key !== key && item.neededTo > now);
      return pack([...others, { key, neededTo, permits: granted.permits }]);
    });
    return turns;
  }
}
