import type { EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { NodeCase } from '#shared/explain/fate.ts';
import type { LiveCluster } from './live-cluster.ts';

/** A node as its API server shows it. Rejects with `ApiError`. */
export async function liveNode({ api }: Pick<LiveCluster, 'api'>, name: NodeName): Promise<NodeCase['live']> {
  const node = await api.getNode(name);
  if (!node) return { taints: undefined };
  return { taints: node.taints, taintsStamp: node.taintsStamp, zone: node.zone };
}

/** Since when a node has its taints at the latest, as far as its API server says: when somebody wrote them last. */
export function taintsWrittenAt({ taintsStamp = '' }: NodeCase['live']): EpochMs | undefined {
  const moments = taintsStamp.split(',').map((stamp) => Date.parse(stamp.slice(stamp.lastIndexOf('@') + 1)));
  const known = moments.filter((at) => !Number.isNaN(at));
  return known.length === 0 ? undefined : Math.max(...known);
}
