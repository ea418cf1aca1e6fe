import { connectionStatusOf, isOutOfReach } from '#shared/conditions/conditions.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Disconnection } from '#shared/explain/disconnection.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fleet } from '../fleet/fleet.ts';

/** `undefined`: a relay is connected or connecting. Rejects with `StoreError`. */
export async function disconnectionOf(
  fleet: Pick<Fleet, 'leases' | 'service'>,
  cluster: ClusterName,
  now: EpochMs,
): Promise<Disconnection | undefined> {
  // If the process doesn't respond, use the lease.
  const [lease, service] = await Promise.all([
    fleet.leases.read(cluster),
    fleet.service().catch(() => undefined),
  ]);
  const view = service?.clusters[cluster];
  const lastContactAt = view?.lastContactAt ?? lease?.lastContactAt;
  if (view?.state === 'syncing') return undefined;
  if (connectionStatusOf(lastContactAt, now) === 'connected' && !isOutOfReach(view, lease)) return undefined;
  return lastContactAt === undefined ? {} : { since: lastContactAt };
}
