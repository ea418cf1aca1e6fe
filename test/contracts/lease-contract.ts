import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ReportedProgress } from '#shared/eviction/guard.ts';
import { type ClusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { Lease, LeaseRecord, Leases } from '#shared/state/lease.ts';
import { VERSION } from '#shared/version.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Leases under contract; every test uses clusters of its own, so one instance serves all tests. */
export interface LeasesUnderContract {
  readonly leases: Leases;
  close(): Promise<void>;
}

/** The first epoch of a lease that is acquired at `NOW`. */
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

    /** Acquires a lease without concurrent writers. */
    async function taken(cluster: ClusterName, holder: string, now = NOW): Promise<Lease> {
      const lease = await leases.take(cluster, await leases.read(cluster), holder, now);
      assert.ok(lease);
      return lease;
    }

    async function renewed(lease: Lease, renewedAt = NOW): Promise<Lease> {
      const kept = await leases.renew(lease, { renewedAt });
      assert.ok(kept);
      return kept;
    }

    test('are acquired for the first time with the current second as the epoch', async () => {
      const cluster = aCluster('admin@prod/eu:1');
      assert.equal(await leases.read(cluster), undefined);
      const lease = await leases.take(cluster, undefined, 'a', NOW);
      assert.deepEqual(lease, {
        cluster,
        holder: 'a',
        version: VERSION,
        epoch: FIRST_EPOCH,
        renewals: 0,
        renewedAt: NOW,
      });
      assert.deepEqual(await leases.read(cluster), lease);
    });

    test('keep a claim for later holders, and replace it by the name that was first, and back', async () => {
      const cluster = aCluster();
      const uids = { system: 's1', nodes: ['n1', 'n2'] };
      const first = await taken(cluster, 'a');
      await leases.renew(first, { renewedAt: NOW, claim: { uids } });
      await renewed(first);
      await leases.release(first);
      const second = await taken(cluster, 'b');
      assert.deepEqual(second.uids, uids);
      const main = aCluster('main');
      await leases.renew(second, { renewedAt: NOW, claim: { sameAs: main } });
      const refused = await leases.read(cluster);
      assert.deepEqual([refused?.uids, refused?.sameAs], [undefined, main]);
      await leases.renew(second, { renewedAt: NOW, claim: { uids: { nodes: [] } } });
      const { uids: last, sameAs } = (await leases.read(cluster)) ?? {};
      assert.deepEqual([last, sameAs], [{ nodes: [] }, undefined]);
    });

    test('are claimed by their holder only', async () => {
      const cluster = aCluster();
      const lost = await taken(cluster, 'a');
      await taken(cluster, 'b');
      await leases.renew(lost, { renewedAt: NOW, claim: { uids: { nodes: ['n1'] } } });
      assert.equal((await leases.read(cluster))?.uids, undefined);
    });

    test('cannot be acquired with an outdated record', async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const refuses = async (found: LeaseRecord | undefined) => {
        const before = await leases.read(cluster);
        assert.equal(await leases.take(cluster, found, 'b', NOW), undefined);
        assert.deepEqual(await leases.read(cluster), before);
      };
      await refuses(undefined);
      const kept = await renewed(lease);
      await refuses(lease);
      await leases.release(kept);
      await refuses(kept);
      const free = await leases.read(cluster);
      await taken(cluster, 'c');
      await refuses(free);
    });

    test('are acquired with the current record, at any clock, with a newer epoch', async () => {
      const cluster = aCluster();
      const former = await renewed(await taken(cluster, 'a'));
      const hourAgo = NOW - 3_600_000;
      assert.deepEqual(await leases.take(cluster, former, 'b', hourAgo), {
        cluster,
        holder: 'b',
        version: VERSION,
        epoch: FIRST_EPOCH + 1,
        renewals: 0,
        renewedAt: hourAgo,
      });
    });

    test('show every renewal, in the same epoch', async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const first = await leases.renew(lease, { renewedAt: NOW + 3_000 });
      assert.deepEqual(first, { ...lease, renewals: 1, renewedAt: NOW + 3_000 });
      assert.deepEqual(await leases.read(cluster), first);
      // A holder that lost a response uses the previous renewal.
      const second = await leases.renew(lease, { renewedAt: NOW + 6_000 });
      assert.deepEqual(second, { ...lease, renewals: 2, renewedAt: NOW + 6_000 });
      assert.deepEqual(await leases.read(cluster), second);
    });

    test('accept a late renewal while nobody else has acquired the lease', async () => {
      const lease = await taken(aCluster(), 'a');
      assert.equal((await renewed(lease, NOW + 3_600_000)).epoch, lease.epoch);
    });

    test("keep a cluster's data when the holder changes", async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const known = { lastContactAt: NOW + 1_000, nodes: 3 };
      assert.deepEqual(await leases.renew(lease, { renewedAt: NOW + 3_000, ...known }), {
        ...lease,
        renewals: 1,
        renewedAt: NOW + 3_000,
        ...known,
      });
      const again = await renewed(lease, NOW + 6_000);
      assert.deepEqual([again.lastContactAt, again.nodes], [known.lastContactAt, known.nodes]);
      await leases.release(again);
      const next = await taken(cluster, 'b');
      assert.deepEqual([next.lastContactAt, next.nodes], [known.lastContactAt, known.nodes]);
      const none = await leases.renew(next, { renewedAt: NOW, lastContactAt: NOW + 9_000, nodes: 0 });
      assert.deepEqual([none?.lastContactAt, none?.nodes], [NOW + 9_000, 0]);
    });

    test("keep the holder's own data with its renewals, and drop it with its lease", async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const first = await leases.renew(lease, { renewedAt: NOW, breakerOpen: true });
      assert.ok(first);
      const again = await renewed(first);
      assert.deepEqual([again.version, again.breakerOpen], [VERSION, true]);
      assert.equal((await leases.renew(again, { renewedAt: NOW, breakerOpen: false }))?.breakerOpen, false);
      const next = await taken(cluster, 'b');
      assert.deepEqual([next.version, next.breakerOpen], [VERSION, undefined]);
      const answer = await leases.renew(next, { renewedAt: NOW, breakerOpen: true });
      assert.ok(answer);
      await leases.release(answer);
      const free = await leases.read(cluster);
      assert.deepEqual([free?.version, free?.breakerOpen], [undefined, undefined]);
    });

    test('keep the faults that a holder reports until it reports others, and drop them with its lease', async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const faults: readonly Fault[] = [
        { type: 'list-failing', resource: 'pods', status: 403, since: NOW, error: 'Cannot list pods: 403.' },
        { type: 'built-in-evicts', count: 8, since: NOW - 1, error: 'They were held: “ü”.' },
        { type: 'watch-failing', resource: 'nodes', since: NOW, error: 'Cannot watch nodes.' },
      ];
      assert.deepEqual((await leases.renew(lease, { renewedAt: NOW, faults }))?.faults, faults);
      assert.deepEqual((await renewed(lease)).faults, faults);
      assert.deepEqual((await leases.read(cluster))?.faults, faults);
      assert.deepEqual((await leases.renew(lease, { renewedAt: NOW, faults: [] }))?.faults, []);
      assert.deepEqual((await leases.read(cluster))?.faults, []);
      await leases.renew(lease, { renewedAt: NOW, faults });
      const next = await taken(cluster, 'b');
      assert.equal(next.faults, undefined, 'those of the holder before');
      assert.equal(await leases.renew(lease, { renewedAt: NOW, faults }), undefined);
      assert.equal((await leases.read(cluster))?.faults, undefined);
      await leases.renew(next, { renewedAt: NOW, faults });
      await leases.release(next);
      assert.equal((await leases.read(cluster))?.faults, undefined, 'nobody holds it');
    });

    test("keep the trips' progress that a holder reports, and drop it with its lease", async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const tripProgress: readonly ReportedProgress[] = [
        { scope: 'cluster', trippedAt: NOW, affectedNow: 11, resetsBelow: 6 },
        { scope: 'zone', zone: 'ü', trippedAt: NOW, affectedNow: 0, resetsBelow: 2, resetsAt: NOW + 1 },
        { scope: 'customTaints', trippedAt: NOW, affectedNow: 1, resetsBelow: 1 },
      ];
      await leases.renew(lease, { renewedAt: NOW, tripProgress });
      assert.deepEqual((await renewed(lease)).tripProgress, tripProgress);
      assert.deepEqual((await leases.read(cluster))?.tripProgress, tripProgress);
      assert.deepEqual((await leases.renew(lease, { renewedAt: NOW, tripProgress: [] }))?.tripProgress, []);
      await leases.renew(lease, { renewedAt: NOW, tripProgress });
      const next = await taken(cluster, 'b');
      assert.equal(next.tripProgress, undefined, 'that of the holder before');
      await leases.renew(next, { renewedAt: NOW, tripProgress });
      await leases.release(next);
      assert.equal((await leases.read(cluster))?.tripProgress, undefined, 'nobody holds it');
    });

    test('keep a bid until the holder declines it, or the lease is acquired', async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      const [first, second] = ['b', 'c'].map((holder, load) => ({ holder, load }));
      assert.ok(first && second);
      await leases.bid(lease, first);
      assert.deepEqual((await leases.read(cluster))?.bid, first);
      await leases.bid(lease, second);
      const answer = await renewed(lease);
      assert.deepEqual(answer.bid, second);
      const declined = await leases.renew(lease, { renewedAt: NOW, declines: true });
      assert.ok(declined && !('bid' in declined));
      await leases.bid(lease, first);
      await leases.release(lease);
      assert.deepEqual((await leases.read(cluster))?.bid, first);
      const next = await taken(cluster, 'b');
      assert.ok(!('bid' in next));
      await leases.bid(lease, second);
      assert.deepEqual(await leases.read(cluster), next, 'it has another holder');
    });

    test("let others acquire a dead holder's lease despite a bid", async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      await leases.bid(lease, { holder: 'b', load: 0 });
      assert.ok(await leases.take(cluster, lease, 'c', NOW));
    });

    test('reject renewals of the former holder after a failover', async () => {
      const cluster = aCluster();
      const former = await taken(cluster, 'a');
      const present = await taken(cluster, 'b');
      assert.equal(await leases.renew(former, { renewedAt: NOW }), undefined);
      await leases.release(former);
      assert.deepEqual(await leases.read(cluster), present);
    });

    test('fence off the former self when the same holder acquires the lease again', async () => {
      const cluster = aCluster();
      const former = await taken(cluster, 'a');
      const present = await taken(cluster, 'a', NOW + 1);
      assert.equal(present.epoch, FIRST_EPOCH + 1);
      assert.equal(await leases.renew(former, { renewedAt: NOW }), undefined);
      await leases.release(former);
      assert.deepEqual(await leases.read(cluster), present);
    });

    test('have no holder when released, and never reuse an epoch', async () => {
      const cluster = aCluster();
      const former = await taken(cluster, 'a');
      await leases.release(former);
      const { holder: _holder, version: _version, ...free } = former;
      assert.deepEqual(await leases.read(cluster), free);
      assert.equal(await leases.renew(former, { renewedAt: NOW }), undefined);
      const present = await taken(cluster, 'b', NOW + 1);
      assert.equal(present.epoch, FIRST_EPOCH + 1);
      await leases.release(present);
      assert.equal((await taken(cluster, 'a', NOW + 2)).epoch, FIRST_EPOCH + 2);
    });

    test('ignore a second release', async () => {
      const cluster = aCluster();
      const lease = await taken(cluster, 'a');
      await leases.release(lease);
      await leases.release(lease);
      assert.equal((await taken(cluster, 'b')).epoch, FIRST_EPOCH + 1);
    });

    test('increase the epoch with every acquisition, at a clock that stands still, steps back, or leaps ahead', async () => {
      const cluster = aCluster();
      const epochs: number[] = [];
      for (const now of [NOW, NOW, NOW - 3_600_000, NOW + 3_600_000, NOW]) {
        epochs.push((await taken(cluster, 'a', now)).epoch - FIRST_EPOCH);
      }
      assert.deepEqual(epochs, [0, 1, 2, 3600, 3601]);
    });

    test('return the epoch to any reader, held or released', async () => {
      const cluster = aCluster();
      assert.equal(await leases.read(cluster), undefined);
      const lease = await taken(cluster, 'a');
      assert.equal((await leases.read(cluster))?.epoch, FIRST_EPOCH);
      await leases.release(lease);
      assert.equal((await leases.read(cluster))?.epoch, FIRST_EPOCH);
    });

    test("store the holder's list of pods stuck terminating for any reader", async () => {
      const cluster = aCluster();
      assert.deepEqual(await leases.stuck(cluster), []);
      const former = await taken(cluster, 'a');
      assert.deepEqual(await leases.stuck(cluster), []);
      const states = { there: 0, unreachable: 0, gone: 0 } satisfies Record<StuckPod['nodeState'], 0>;
      const pods = Object.keys(states).map((nodeState) => ({
        node: nodeName('n1'),
        uid: podUid('u1'),
        namespace: 'default',
        name: 'web-0',
        gracePeriodEndedAt: NOW,
        finalizers: ['example.com/backup'],
        nodeState: nodeState as StuckPod['nodeState'],
      }));
      await leases.reportStuck(former, pods);
      assert.deepEqual(await leases.stuck(cluster), pods);
      await leases.release(former);
      const present = await taken(cluster, 'b');
      await leases.reportStuck(former, []);
      assert.deepEqual(await leases.stuck(cluster), pods);
      await leases.reportStuck(present, []);
      assert.deepEqual(await leases.stuck(cluster), []);
    });

    test('are separate for each cluster', async () => {
      const [one, two] = [aCluster(), aCluster()];
      await taken(one, 'a');
      await taken(one, 'a');
      assert.equal((await taken(two, 'b')).epoch, FIRST_EPOCH);
      assert.equal((await leases.read(one))?.holder, 'a');
    });

    test('are acquired by exactly one of many concurrent candidates', async () => {
      const cluster = aCluster();
      const holders = Array.from({ length: 10 }, (_, index) => `relay-${index}`);
      for (const epoch of [FIRST_EPOCH, FIRST_EPOCH + 1, FIRST_EPOCH + 2]) {
        const found = await leases.read(cluster);
        const results = await Promise.all(holders.map((holder) => leases.take(cluster, found, holder, NOW)));
        const won = results.filter((lease) => lease !== undefined);
        assert.deepEqual(
          won.map((lease) => lease.epoch),
          [epoch],
        );
      }
    });
  });
}
