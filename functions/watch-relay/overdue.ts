import pMap from 'p-map';
import type { ClusterName, EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { Partition } from '#shared/eviction/records.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import type { Store } from '#shared/store/store.ts';

/** Partitions that are read at a time. */
const READS_AT_ONCE = 8;

/**
 * For how long the eviction of a cluster is due (ms) that is due longest, on nodes with a taint of one of these keys; 0:
 * none is due. A try that failed counts on from its deadline; what was given up, or what policy forbids, does not count.
 * Rejects with `StoreError`.
 */
export async function longestOverdueMs(
  store: Pick<Store, 'taintedNodes' | 'load'>,
  cluster: ClusterName,
  keys: readonly string[],
  now: EpochMs,
): Promise<number> {
  const nodes: NodeName[] = [];
  for await (const { node, state } of store.taintedNodes(cluster))
    if (state.taints.some(({ key }) => keys.includes(key))) nodes.push(node);
  const partitions = await pMap(nodes, (node) => store.load({ cluster, node }, now), {
    concurrency: READS_AT_ONCE,
  });
  return Math.max(0, ...partitions.map((partition) => overdueMs(partition, now)));
}

function overdueMs({ scheduled }: Partition, now: EpochMs): number {
  // Without the node's retries, which only put a deadline off that has passed.
  const moments = [...scheduled.values()].map((record) => momentOf(record, undefined) ?? Infinity);
  return now - Math.min(now, ...moments);
}
