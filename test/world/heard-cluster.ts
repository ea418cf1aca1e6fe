import assert from 'node:assert/strict';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Leases } from '#shared/state/lease.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Has a relay hear from a cluster at that moment. */
export async function heardCluster(leases: Leases, cluster: ClusterName, at: EpochMs): Promise<void> {
  const lease = await leases.take(cluster, await leases.look(cluster), 'relay-1', at);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: at, heardAt: at });
}
