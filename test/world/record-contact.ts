import assert from 'node:assert/strict';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Leases } from '#shared/state/lease.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Makes a relay record a contact with a cluster at that time. */
export async function recordContact(leases: Leases, cluster: ClusterName, at: EpochMs): Promise<void> {
  const lease = await leases.take(cluster, await leases.read(cluster), 'relay-1', at);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: at, lastContactAt: at });
}
