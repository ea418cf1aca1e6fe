import assert from 'node:assert/strict';
import { type ClusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { aNode, anEnding, aRecord } from '#test/contracts/partition-builders.ts';
import type { embeddedFleet } from './embedded-fleet.ts';

/**
 * Gives a cluster `count` stuck pods, tainted nodes, and on each node as many pending evictions and an ended one, under
 * names that all clusters share, and an audit entry.
 */
export async function makeBusy(
  { fleet, store, leases }: Pick<ReturnType<typeof embeddedFleet>, 'fleet' | 'store' | 'leases'>,
  cluster: ClusterName,
  count: number,
  now: number,
): Promise<void> {
  const all = Array.from({ length: count }, (_, index) => index);
  await perform({ kind: 'apply-policy', cluster, text: 'mode: enforce' }, await fleet.operator());
  for (const n of all) {
    const ref = { cluster, node: nodeName(`n${n}`) };
    const record = (name: string) =>
      aRecord({ name, uid: podUid(`${name}-on-${n}`), startedAt: now - 1, dueAt: now + 60_000 });
    const [ended, ...schedule] = ['ended', ...all.map((p) => `p${p}`)].map(record);
    assert.ok(ended);
    await store.commit(ref, 0, { node: aNode(), schedule, end: [anEnding(ended)], live: true }, now - 1);
  }
  const lease = await leases.take(cluster, undefined, 'relay-1', now);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: now, lastContactAt: now, nodes: count, faults: [] });
  const stuck = { namespace: 'default', gracePeriodEndedAt: now, finalizers: [], nodeState: 'gone' } as const;
  await leases.reportStuck(
    lease,
    all.map((n) => ({ ...stuck, node: nodeName(`n${n}`), uid: podUid(`s${n}`), name: `s${n}` })),
  );
}
