import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { ObjectLeases, releasedLease } from '#shared/state/objects/object-leases.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');

leaseContract('ObjectLeases', async () => ({
  leases: new ObjectLeases(new FakeObjects()),
  close: async () => undefined,
}));

type LeaseObject = KubernetesObject & { readonly spec: Readonly<Record<string, unknown>> };

test('shows holder, acquisition time, and number of transitions in the Lease', async () => {
  const objects = new FakeObjects();
  const leases = new ObjectLeases(objects);
  const lease = await leases.take(own, undefined, 'pod-a', NOW);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: NOW + 3_000 });
  const spec = async () => ((await objects.get('taintward-in-cluster')) as LeaseObject).spec;
  const first = {
    holderIdentity: 'pod-a',
    leaseDurationSeconds: 10,
    leaseTransitions: 1,
    acquireTime: '2026-11-21T12:00:00.000000Z',
    renewTime: '2026-11-21T12:00:03.000000Z',
  };
  assert.deepEqual(await spec(), first);
  await leases.take(own, await leases.read(own), 'pod-b', NOW + 20_000);
  const { holderIdentity, leaseTransitions } = await spec();
  assert.deepEqual([holderIdentity, leaseTransitions], ['pod-b', 2]);
});

for (const [what, more] of [
  ['', {}],
  ['with an empty specification ', { spec: {} }],
] as const)
  test(`acquires an empty Lease ${what}that was created in advance`, async () => {
    const objects = new FakeObjects();
    const leases = new ObjectLeases(objects);
    const annotations = { 'taintward.dev/cluster': own };
    const metadata = { name: 'taintward-in-cluster', annotations };
    const empty = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, ...more };
    await objects.create(empty);
    assert.equal(await leases.read(own), undefined);
    assert.equal(releasedLease(await objects.get(metadata.name)), undefined);
    assert.equal((await leases.take(own, undefined, 'pod-a', NOW))?.holder, 'pod-a');
    assert.equal(((await objects.get(metadata.name)) as LeaseObject).spec['leaseTransitions'], 1);
  });

test('ignores fields that a newer release added to the report', async () => {
  const objects = new FakeObjects();
  const leases = new ObjectLeases(objects);
  const lease = await leases.take(own, undefined, 'pod-a', NOW);
  const object = (await objects.get('taintward-in-cluster')) as LeaseObject;
  const { annotations = {} } = object.metadata;
  const report = `${annotations['taintward.dev/report']}`.replace('{', '{"freeze":true,');
  const changed = { ...annotations, 'taintward.dev/report': report };
  await objects.replace({ ...object, metadata: { ...object.metadata, annotations: changed } });
  assert.deepEqual(await leases.read(own), lease);
});

test('rejects a Lease with an unreadable report', async () => {
  const objects = new FakeObjects();
  const leases = new ObjectLeases(objects);
  await leases.take(own, undefined, 'pod-a', NOW);
  const object = (await objects.get('taintward-in-cluster')) as LeaseObject;
  const annotations = { 'taintward.dev/report': 'none' };
  await objects.replace({ ...object, metadata: { ...object.metadata, annotations } });
  await assert.rejects(leases.read(own), {
    name: 'StoreError',
    message: /lease of cluster in-cluster cannot be read/,
  });
});
