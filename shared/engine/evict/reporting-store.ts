import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';
import type { Store } from '#shared/state/store.ts';

/** Returns a store that reports each write, with the error of a failed one: nothing else shows a full disk. */
export function reportingStore(store: Store, stored: (cluster: ClusterName, error?: unknown) => void): Store {
  const reported = async <T>({ cluster }: NodeRef, write: Promise<T>): Promise<T> => {
    try {
      const done = await write;
      stored(cluster);
      return done;
    } catch (error) {
      stored(cluster, error);
      throw error;
    }
  };
  return {
    load: (...args) => store.load(...args),
    commit: (ref, ...rest) => reported(ref, store.commit(ref, ...rest)),
    end: (ref, ...rest) => reported(ref, store.end(ref, ...rest)),
    taintedNodes: (cluster) => store.taintedNodes(cluster),
  };
}
