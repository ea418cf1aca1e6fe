import { defined } from '#shared/defined.ts';
import type { NodeName } from '#shared/eviction/identity.ts';
import { nodeLife } from '#shared/eviction/node-life.ts';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ContextFleet, Fleet } from '../fleet/fleet.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { factOf } from './facts.ts';

/** With a service, also reads its Lease if the node has the unreachable taint. Rejects with `ApiError`. */
export async function liveNode(
  { api }: Pick<LiveCluster, 'api'>,
  name: NodeName,
  fleet: Pick<Fleet | ContextFleet, 'kind'>,
  clock: Clock,
): Promise<NodeCase['live']> {
  const node = await api.getNode(name);
  if (!node) return { taints: undefined };
  const { taints, taintsStamp, zone } = node;
  const shown = shownIn(fleet, { taints, taintsStamp, zone });
  // The built-in controller doesn't read Leases.
  if (fleet.kind === 'context' || !taints.some(({ key }) => key === NODE_UNREACHABLE)) return shown;
  const life = await factOf(async () => nodeLife(await api.getNodeLease(name), clock.now()));
  return 'unknown' in life ? { ...shown, lifeUnknown: life.unknown } : { ...shown, life: life.value };
}

/** Without a service, adds the time since which the node has had all its taints at the latest, by its API server. */
export function shownIn(
  { kind }: Pick<Fleet | ContextFleet, 'kind'>,
  live: NodeCase['live'],
): NodeCase['live'] {
  if (kind !== 'context') return live;
  const stamps = (live.taintsStamp ?? '').split(',');
  const moments = stamps.map((stamp) => Date.parse(stamp.slice(stamp.lastIndexOf('@') + 1)));
  const known = moments.filter((at) => !Number.isNaN(at));
  return { ...live, ...defined({ foundAt: known.length === 0 ? undefined : Math.max(...known) }) };
}
