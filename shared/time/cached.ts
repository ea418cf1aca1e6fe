import { Age } from './age.ts';
import type { Clock } from './clock.ts';

/**
 * Caches what `read` returns for each key for `maxAgeMs`; concurrent callers share one read. Rejects as `read` does; a failed read is not
 * cached.
 */
export function cached<Key, T>(
  maxAgeMs: number,
  read: (key: Key) => Promise<T>,
  clock: Clock,
): (key: Key) => Promise<T> {
  const known = new Map<Key, { readonly age: Age; readonly found: Promise<T> }>();
  return async (key) => {
    const last = known.get(key);
    if (last && last.age.atMostMs < maxAgeMs) return last.found;
    const age = new Age(clock);
    const found = read(key);
    known.set(key, { age, found });
    found.catch(() => known.delete(key));
    return found;
  };
}
