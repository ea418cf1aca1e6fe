import type { NodeName } from '#shared/eviction/identity.ts';
import { nodeLife } from '#shared/eviction/node-life.ts';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { factOf } from './facts.ts';

/**
 * A node as its API server shows it; with `leases`, what its Lease says, too, where the node is called unreachable. Rejects with
 * `ApiError`.
 */
export async function liveNode(
  { api }: Pick<LiveCluster, 'api'>,
  name: NodeName,
  leases?: { readonly clock: Clock },
): Promise<NodeCase['live']> {
  const node = await api.getNode(name);
  if (!node) return { taints: undefined };
  const { taints, taintsStamp, zone } = node;
  const shown = { taints, taintsStamp, zone };
  if (!leases || !taints.some(({ key }) => key === NODE_UNREACHABLE)) return shown;
  const life = await factOf(async () => nodeLife(await api.getNodeLease(name), leases.clock.now()));
  return 'unknown' in life ? { ...shown, lifeUnknown: life.unknown } : { ...shown, life: life.value };
}

/** Since when a node has its taints at the latest, as far as its API server says: when somebody wrote them last. */
export function taintsWrittenAt({ taintsStamp = '' }: NodeCase['live']): EpochMs | undefined {
  const moments = taintsStamp.split(',').map((stamp) => Date.parse(stamp.slice(stamp.lastIndexOf('@') + 1)));
  const known = moments.filter((at) => !Number.isNaN(at));
  return known.length === 0 ? undefined : Math.max(...known);
}
