import type { ClusterName } from '#shared/eviction/identity.ts';
import { Age } from './age.ts';
import type { Clock } from './clock.ts';

/**
 * Reads something of each cluster again only when what was read is older than `maxAgeMs`; who asks meanwhile waits for the same
 * answer. What it returns rejects as `read` does, and then it is read anew.
 */
export function cached<T>(
  maxAgeMs: number,
  read: (cluster: ClusterName) => Promise<T>,
  clock: Clock,
): (cluster: ClusterName) => Promise<T> {
  const known = new Map<ClusterName, { readonly age: Age; readonly found: Promise<T> }>();
  return async (cluster) => {
    const last = known.get(cluster);
    if (last && last.age.atMostMs < maxAgeMs) return last.found;
    const age = new Age(clock);
    const found = read(cluster);
    known.set(cluster, { age, found });
    found.catch(() => known.delete(cluster));
    return found;
  };
}
