import type { NodeName } from '#shared/eviction/identity.ts';
import { nodeLife } from '#shared/eviction/node-life.ts';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { factOf } from './facts.ts';

/** With `leases`, also reads its Lease if the node has the unreachable taint. Rejects with `ApiError`. */
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

/** According to its API server. The node has had all its taints since then at the latest. */
export function taintsWrittenAt({ taintsStamp = '' }: NodeCase['live']): EpochMs | undefined {
  const moments = taintsStamp.split(',').map((stamp) => Date.parse(stamp.slice(stamp.lastIndexOf('@') + 1)));
  const known = moments.filter((at) => !Number.isNaN(at));
  return known.length === 0 ? undefined : Math.max(...known);
}
