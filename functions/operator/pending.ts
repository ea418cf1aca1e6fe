import pMap from 'p-map';
import type { ClusterName, EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { Store, TaintedNode } from '#shared/store/store.ts';

/** Nodes that are read at a time. */
const PARALLEL_NODES = 16;

/** A pod that is to be evicted. */
export interface Pending {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly record: EvictionRecord;
}

/** What is to be evicted in a cluster, as {@link pendingOn}. Rejects with `StoreError`. */
export const pendingOf = async (
  store: Store,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly Pending[]> =>
  pendingOn(await Array.fromAsync(store.taintedNodes(cluster)), store, cluster, now);

/**
 * What is to be evicted from these nodes of a cluster, the first to go first, and by name; what ended in this moment may still be
 * among it. Rejects with `StoreError`.
 */
export async function pendingOn(
  nodes: readonly Pick<TaintedNode, 'node'>[],
  store: Pick<Store, 'load'>,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly Pending[]> {
  const partitions = await pMap(nodes, ({ node }) => store.load({ cluster, node }, now), {
    concurrency: PARALLEL_NODES,
  });
  return partitions
    .flatMap(({ ref, scheduled }) => [...scheduled.values()].map((record) => ({ ...ref, record })))
    .sort(firstDue);
}

/** By deadline, and at one moment by name: a table whose rows change places cannot be read. */
export const firstDue = (a: Pending, b: Pending): number =>
  a.record.fireAt - b.record.fireAt || (placeOf(a) < placeOf(b) ? -1 : 1);

const placeOf = ({ cluster, record }: Pending): string =>
  `${cluster}/${record.namespace}/${record.name}/${record.uid}`;
