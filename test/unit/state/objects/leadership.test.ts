import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { LEASE_TTL_MS, type Lease } from '#shared/state/lease.ts';
import { Leadership } from '#shared/state/objects/leadership.ts';
import { ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');

describe('a leadership', () => {
  let objects: FakeObjects;
  let leases: ObjectLeases;
  let leadership: Leadership;
  let at: number;
  let stopwatchMs: number;
  const pass = (ms: number) => {
    at += ms;
    stopwatchMs += ms;
  };
  const took = async (): Promise<Lease> => {
    const lease = await leadership.take(own, await leases.read(own), 'a', NOW);
    assert.ok(lease);
    return lease;
  };
  const isOver = () => Promise.race([leadership.ended.then(() => true), Promise.resolve(false)]);
  beforeEach(() => {
    [at, stopwatchMs] = [NOW, 0];
    objects = new FakeObjects();
    leases = new ObjectLeases(objects);
    leadership = new Leadership(objects, { now: () => at, stopwatch: () => stopwatchMs });
  });

  test('begins with the lease and lasts until another process could acquire it', async () => {
    assert.equal(leadership.mayAct(), false);
    await took();
    await leadership.begun;
    pass(LEASE_TTL_MS - 1);
    assert.equal(leadership.mayAct(), true);
    pass(1);
    assert.equal(leadership.mayAct(), false);
    assert.equal(await isOver(), false, 'nobody has taken it yet');
  });

  test('is measured from the request of the lease, however late the answer', async (t) => {
    for (const write of ['create', 'replace'] as const) {
      const written = objects[write].bind(objects);
      t.mock.method(objects, write, async (object: KubernetesObject) => {
        const given = await written(object);
        pass(5_000);
        return given;
      });
    }
    const lease = await took();
    pass(LEASE_TTL_MS - 5_000 - 1);
    assert.equal(leadership.mayAct(), true);
    pass(1);
    assert.equal(leadership.mayAct(), false);
    assert.ok(await leadership.renew(lease, { renewedAt: at }));
    pass(LEASE_TTL_MS - 5_000 - 1);
    assert.equal(leadership.mayAct(), true);
    pass(1);
    assert.equal(leadership.mayAct(), false);
  });

  test('is suspended while its lease may have expired, and continues after a renewal', async () => {
    const lease = await took();
    pass(60_000);
    assert.equal(leadership.mayAct(), false);
    assert.ok(await leadership.renew(lease, { renewedAt: at }));
    assert.equal(leadership.mayAct(), true);
  });

  test('reports each time, once, that an expired lease was renewed', async () => {
    const lease = await took();
    let times = 0;
    leadership.whenRegained(() => times++);
    pass(LEASE_TTL_MS - 1);
    await leadership.renew(lease, { renewedAt: at });
    assert.equal(times, 0);
    pass(LEASE_TTL_MS);
    await leadership.renew(lease, { renewedAt: at });
    await leadership.renew(lease, { renewedAt: at });
    assert.equal(times, 1);
    pass(LEASE_TTL_MS);
    await leadership.renew(lease, { renewedAt: at });
    assert.equal(times, 2);
  });

  for (const [what, leap] of [
    ['a host that slept, whose stopwatch stood', { clock: 60_000, stopwatch: 0 }],
    ['a clock that was set back', { clock: -60_000, stopwatch: LEASE_TTL_MS }],
  ] as const) {
    test(`expires by the longer of both clocks: ${what}`, async () => {
      await took();
      at += leap.clock;
      stopwatchMs += leap.stopwatch;
      assert.equal(leadership.mayAct(), false);
    });
  }

  test('ends once when another process holds the lease', async () => {
    const lease = await took();
    await leases.take(own, await leases.read(own), 'b', NOW);
    assert.equal(await leadership.renew(lease, { renewedAt: at }), undefined);
    await leadership.ended;
    assert.equal(leadership.mayAct(), false);
  });

  test('ends before the lease is released, not after', async () => {
    const lease = await took();
    const releasing = leadership.release(lease);
    assert.equal(leadership.mayAct(), false);
    await releasing;
    assert.equal((await leases.read(own))?.holder, undefined);
  });

  test('measures a renewal from its request', async () => {
    const lease = await took();
    const renewing = leadership.renew(lease, { renewedAt: at });
    pass(LEASE_TTL_MS);
    await renewing;
    assert.equal(leadership.mayAct(), false);
  });
});
