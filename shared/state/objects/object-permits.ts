import * as z from 'zod';
import type { Turn } from '#shared/eviction/rate.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { type Permits, permitItem } from '#shared/state/permits.ts';
import { clusterKey } from './node-eviction.ts';
import { PackedList, pack } from './packed.ts';

const schema = z.array(z.object({ key: z.string(), neededTo: z.int(), permits: z.unknown() }));

/** Permits of a cluster in one ConfigMap: some 10,000 at a time. */
export const objectPermits = (objects: Objects): Permits => ({
  async take(cluster, pods, limit, now) {
    const name = `taintward-permits-${clusterKey(cluster)}`;
    const kept = new PackedList({ objects, schema, name, key: 'permits' });
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
  },
});
