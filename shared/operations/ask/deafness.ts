import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { Deafness } from '#shared/explain/deafness.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { hearingOf } from '../look/needs.ts';

/** Whether nobody hears a cluster; `undefined`: a relay does, or is about to. Rejects with `StoreError`. */
export async function deafnessOf(
  fleet: Pick<Fleet, 'leases' | 'service'>,
  cluster: ClusterName,
  now: EpochMs,
): Promise<Deafness | undefined> {
  // A process that does not answer says nothing of it.
  const [lease, service] = await Promise.all([
    fleet.leases.look(cluster),
    fleet.service().catch(() => undefined),
  ]);
  const view = service?.clusters[cluster];
  const heardAt = view?.heardAt ?? lease?.heardAt;
  if (view?.state === 'syncing' || hearingOf(heardAt, now) === 'connected') return undefined;
  return heardAt === undefined ? {} : { since: heardAt };
}
