import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Lease, LeaseReader, Leases } from '#shared/clusters/lease.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Leases under contract; every test uses clusters of its own, so one instance serves them all. */
export interface LeasesUnderContract {
  readonly leases: Leases & Pick<LeaseReader, 'epoch'>;
  close(): Promise<void>;
}

const TTL_MS = 15_000;
/** The first epoch of a lease that is taken at `NOW`. */
const FIRST_EPOCH = NOW / 1000;

/** Registers the tests that every implementation of `Leases` has to pass. */
export function leaseContract(name: string, make: () => Promise<LeasesUnderContract>): void {
  describe(`${name} keep the contract of leases`, () => {
    let underContract: LeasesUnderContract | undefined;
    let leases: LeasesUnderContract['leases'];
    before(async () => {
      underContract = await make();
      leases = underContract.leases;
    });
    after(() => underContract?.close());

    /** Acquires what must be free. */
    async function acquired(cluster: ClusterName, holder: string, now = NOW): Promise<Lease> {
      const lease = await leases.acquire(cluster, holder, now, TTL_MS);
      assert.ok(lease);
      return lease;
    }

    test('a free lease is taken, under the second of that moment as its epoch', async () => {
      const cluster = aCluster('admin@prod/eu:1');
      const lease = await leases.acquire(cluster, 'a', NOW, TTL_MS);
      assert.deepEqual(lease, { cluster, holder: 'a', epoch: FIRST_EPOCH, expiresAt: NOW + TTL_MS });
    });

    test('nobody takes a lease that another one holds, until the moment it expires', async () => {
      const cluster = aCluster();
      await acquired(cluster, 'a');
      assert.equal(await leases.acquire(cluster, 'b', NOW, TTL_MS), undefined);
      assert.equal(await leases.acquire(cluster, 'b', NOW + TTL_MS - 1, TTL_MS), undefined);
      const lease = await leases.acquire(cluster, 'b', NOW + TTL_MS, TTL_MS);
      assert.deepEqual(lease, {
        cluster,
        holder: 'b',
        epoch: FIRST_EPOCH + TTL_MS / 1000,
        expiresAt: NOW + 2 * TTL_MS,
      });
    });

    test('a renewed lease lasts from the renewal on, in the same epoch', async () => {
      const cluster = aCluster();
      const lease = await acquired(cluster, 'a');
      const renewed = await leases.renew(lease, NOW + 10_000, TTL_MS);
      assert.deepEqual(renewed, { ...lease, expiresAt: NOW + 10_000 + TTL_MS });
      assert.equal(await leases.acquire(cluster, 'b', NOW + TTL_MS, TTL_MS), undefined);
      assert.ok((await acquired(cluster, 'b', NOW + 10_000 + TTL_MS)).epoch > lease.epoch);
    });

    test('an expired lease that nobody took can still be renewed', async () => {
      const lease = await acquired(aCluster(), 'a');
      const late = NOW + 10 * TTL_MS;
      assert.deepEqual(await leases.renew(lease, late, TTL_MS), { ...lease, expiresAt: late + TTL_MS });
    });

    test('a lease that another one took over is lost to its former holder', async () => {
      const cluster = aCluster();
      const former = await acquired(cluster, 'a');
      const present = await acquired(cluster, 'b', former.expiresAt);
      assert.equal(await leases.renew(former, former.expiresAt, TTL_MS), undefined);
      await leases.release(former);
      assert.deepEqual(await leases.renew(present, former.expiresAt + 1, TTL_MS), {
        ...present,
        expiresAt: former.expiresAt + 1 + TTL_MS,
      });
      assert.equal(await leases.acquire(cluster, 'a', former.expiresAt + 1, TTL_MS), undefined);
    });

    test('taking it again as the same holder is a take-over that fences off the former self', async () => {
      const cluster = aCluster();
      const former = await acquired(cluster, 'a');
      const present = await acquired(cluster, 'a', NOW + 1);
      assert.equal(present.epoch, FIRST_EPOCH + 1);
      assert.equal(await leases.renew(former, NOW + 2, TTL_MS), undefined);
      await leases.release(former);
      assert.equal(await leases.acquire(cluster, 'b', NOW + 2, TTL_MS), undefined);
    });

    test('a released lease is free at once, and its epoch is not used again', async () => {
      const cluster = aCluster();
      const former = await acquired(cluster, 'a');
      await leases.release(former);
      assert.equal(await leases.renew(former, NOW + 1, TTL_MS), undefined);
      const present = await acquired(cluster, 'b', NOW + 1);
      assert.equal(present.epoch, FIRST_EPOCH + 1);
      await leases.release(present);
      assert.equal((await acquired(cluster, 'a', NOW + 2)).epoch, FIRST_EPOCH + 2);
    });

    test('releasing twice does nothing more', async () => {
      const cluster = aCluster();
      const lease = await acquired(cluster, 'a');
      await leases.release(lease);
      await leases.release(lease);
      assert.equal((await acquired(cluster, 'b')).epoch, FIRST_EPOCH + 1);
    });

    test('epochs grow with every take-over, at a clock that stands, goes back or leaps ahead', async () => {
      const cluster = aCluster();
      const epochs: number[] = [];
      for (const now of [NOW, NOW, NOW - 3_600_000, NOW + 3_600_000, NOW]) {
        const lease = await acquired(cluster, 'a', now);
        await leases.release(lease);
        epochs.push(lease.epoch - FIRST_EPOCH);
      }
      assert.deepEqual(epochs, [0, 1, 2, 3600, 3601]);
    });

    test('the epoch can be read by anybody, held, released or expired', async () => {
      const cluster = aCluster();
      assert.equal(await leases.epoch(cluster), undefined);
      const lease = await acquired(cluster, 'a');
      assert.equal(await leases.epoch(cluster), FIRST_EPOCH);
      await leases.release(lease);
      assert.equal(await leases.epoch(cluster), FIRST_EPOCH);
      await acquired(cluster, 'b', NOW + 60_000);
      assert.equal(await leases.epoch(cluster), FIRST_EPOCH + 60);
    });

    test('clusters have leases of their own', async () => {
      const [one, two] = [aCluster(), aCluster()];
      const former = await acquired(one, 'a');
      await leases.release(former);
      await acquired(one, 'a');
      assert.equal((await acquired(two, 'b')).epoch, FIRST_EPOCH);
      assert.equal(await leases.acquire(one, 'b', NOW, TTL_MS), undefined);
    });

    test('of many that reach for one lease at once exactly one gets it', async () => {
      const cluster = aCluster();
      const holders = Array.from({ length: 10 }, (_, index) => `relay-${index}`);
      for (const now of [NOW, NOW + TTL_MS, NOW + 2 * TTL_MS]) {
        const results = await Promise.all(
          holders.map((holder) => leases.acquire(cluster, holder, now, TTL_MS)),
        );
        const won = results.filter((lease) => lease !== undefined);
        assert.equal(won.length, 1);
        assert.equal(won[0]?.epoch, now / 1000);
      }
    });
  });
}
