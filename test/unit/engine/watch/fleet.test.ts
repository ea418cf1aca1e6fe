import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Fleet, leaseToAskFor, MAX_HANDICAP_MS, OVER_BUDGET_MS } from '#shared/engine/watch/fleet.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Lease } from '#shared/state/lease.ts';

const SECOND = 1000;
const CLUSTERS = Array.from({ length: 8 }, (_, index) => clusterName(`c${index}`));
const [C0, C1] = [clusterName('c0'), clusterName('c1')];

let nowMs: number;
let fleet: Fleet;
beforeEach(() => {
  nowMs = 1_000_000;
  fleet = new Fleet({ holder: 'me', budget: 1000, stopwatch: () => nowMs });
});

const lease = (cluster: typeof C0, holder: string, more: Partial<Lease> = {}): Lease => ({
  cluster,
  holder,
  epoch: 1,
  renewals: 0,
  renewedAt: 0,
  ...more,
});

const seeAll = (holder: string) => {
  for (const cluster of CLUSTERS) fleet.saw(cluster, lease(cluster, holder));
};

test('delays lease acquisition while the relay holds other leases, and never for long', () => {
  fleet.saw(C0, undefined);
  assert.equal(fleet.acquireDelayMs(C0), 0);
  fleet.saw(C1, lease(C1, 'me'));
  const one = fleet.acquireDelayMs(C0);
  assert.ok(one > 0 && one <= MAX_HANDICAP_MS);
  assert.equal(fleet.load, 100);
});

test('delays lease acquisition for longer when it would exceed the capacity', () => {
  const { holder: _holder, ...free } = lease(C0, '', { nodes: 901 });
  fleet.saw(C0, free);
  assert.equal(fleet.acquireDelayMs(C0), OVER_BUDGET_MS);
  fleet.saw(C0, { ...free, nodes: 900 });
  assert.equal(fleet.acquireDelayMs(C0), 0);
  fleet.saw(C0, lease(C0, 'me', { nodes: 901 }));
  assert.equal(fleet.excess, 1);
  fleet.forget(C0);
  assert.equal(fleet.excess, 0);
});

test('leaves a lease that was handed to another relay to that relay', () => {
  const { holder: _holder, ...free } = lease(C0, '', { bid: { holder: 'you', load: 0 } });
  fleet.saw(C0, free);
  assert.ok(fleet.acquireDelayMs(C0) > 2 * SECOND);
  fleet.saw(C0, { ...free, bid: { holder: 'me', load: 0 } });
  assert.equal(fleet.acquireDelayMs(C0), 0);
});

test('does not request a cluster that it handed off, and acquires it only when no other relay does', () => {
  seeAll('you');
  for (const cluster of CLUSTERS) fleet.avoid(cluster);
  nowMs += 59 * SECOND;
  assert.ok(fleet.acquireDelayMs(C0) >= 10 * SECOND);
  nowMs += SECOND;
  for (const cluster of CLUSTERS) fleet.avoid(cluster);
  assert.equal(fleet.wanted(CLUSTERS.length), undefined);
  nowMs += 120 * SECOND;
  assert.equal(fleet.acquireDelayMs(C0), 0);
  assert.ok(fleet.wanted(CLUSTERS.length));
});

test('requests no lease until the relay is established and has seen all leases', () => {
  seeAll('you');
  assert.equal(fleet.wanted(CLUSTERS.length), undefined);
  nowMs += 60 * SECOND;
  assert.equal(fleet.wanted(CLUSTERS.length + 1), undefined);
  assert.equal(fleet.wanted(CLUSTERS.length)?.holder, 'you');
});

test('requests the next lease when the last was acquired or does not come', () => {
  seeAll('you');
  nowMs += 60 * SECOND;
  const first = fleet.wanted(CLUSTERS.length);
  assert.ok(first);
  nowMs += 5 * SECOND;
  assert.equal(fleet.wanted(CLUSTERS.length), undefined);
  fleet.saw(first.cluster, { ...first, holder: 'me' });
  const second = fleet.wanted(CLUSTERS.length);
  assert.ok(second && second.cluster !== first.cluster);
  nowMs += 20 * SECOND;
  assert.ok(fleet.wanted(CLUSTERS.length));
});

test('hands off one lease at a time, and only to a relay with clearly less load', () => {
  seeAll('me');
  const contested = (cluster: typeof C0, load: number) =>
    lease(cluster, 'me', { bid: { holder: 'you', load } });
  assert.equal(fleet.gives(lease(C0, 'me')), false, 'nobody requestedOf');
  assert.equal(fleet.gives(contested(C0, 700)), false, 'he has as much');
  assert.equal(fleet.gives(contested(C0, 0)), true);
  assert.equal(fleet.gives(contested(C1, 0)), false, 'another one is on its way');
  fleet.saw(C0, lease(C0, 'you'));
  assert.equal(fleet.gives(contested(C1, 100)), true);
  fleet.forget(C1);
  assert.equal(fleet.gives(contested(C0, 0)), true, 'the cluster on its way was removed');
});

test('goes on waiting for a requested lease when another cluster is acquired, and for a given one until it is acquired', () => {
  seeAll('you');
  nowMs += 60 * SECOND;
  const requested = fleet.wanted(CLUSTERS.length);
  assert.ok(requested);
  const [other = C0] = CLUSTERS.filter((cluster) => cluster !== requested.cluster);
  fleet.saw(other, lease(other, 'me'));
  fleet.saw(requested.cluster, lease(requested.cluster, 'them'));
  assert.equal(fleet.wanted(CLUSTERS.length), undefined, 'its request stands');

  seeAll('me');
  const contested = (cluster: typeof C0) => lease(cluster, 'me', { bid: { holder: 'you', load: 0 } });
  assert.ok(fleet.gives(contested(C0)));
  fleet.saw(C0, lease(C0, 'me'));
  fleet.saw(C1, lease(C1, 'you'));
  fleet.forget(C1);
  assert.equal(fleet.gives(contested(C1)), false, 'another one is still on its way');
});

test('no longer avoids a cluster that was removed and added again', () => {
  fleet.saw(C0, undefined);
  fleet.avoid(C0);
  fleet.forget(C0);
  fleet.saw(C0, undefined);
  assert.equal(fleet.acquireDelayMs(C0), 0);
});

test('avoids a cluster for one to two minutes', () => {
  fleet.saw(C0, undefined);
  fleet.avoid(C0);
  nowMs += 59 * SECOND;
  assert.ok(fleet.acquireDelayMs(C0) > 0);
  nowMs += 61 * SECOND;
  assert.equal(fleet.acquireDelayMs(C0), 0);
});

test('a held lease with a bid is reserved for nobody', () => {
  fleet.saw(C0, lease(C0, 'you', { bid: { holder: 'they', load: 0 } }));
  assert.equal(fleet.acquireDelayMs(C0), 0);
});

test('requests the lease that makes the loads most equal, from the busiest relay that has one, within the capacity', () => {
  const [small, middle, large] = [
    lease(C0, 'busy', { nodes: 0 }),
    lease(C1, 'busy', { nodes: 150 }),
    lease(clusterName('c2'), 'busy', { nodes: 700 }),
  ];
  const busy = [small, middle, large];
  const { holder: _holder, ...free } = lease(clusterName('free'), '', { nodes: 5000 });
  const mine = lease(clusterName('mine'), 'me', { nodes: 50 });
  const requestedOf = (records: Parameters<typeof leaseToAskFor>[0], budget = 1000, avoided?: typeof C0) =>
    leaseToAskFor(records, 'me', budget, (cluster) => cluster === avoided)?.cluster;
  // Loads are 1150 and 150, so a cluster of 500 would make them equal.
  assert.equal(requestedOf([...busy, mine, free]), C1);
  assert.equal(requestedOf([large, middle, small, mine, free]), C1);
  assert.equal(requestedOf([...busy, mine], 1000, C1), large.cluster, 'the best one is avoided');
  assert.equal(requestedOf([...busy, mine], 400), C1, 'it just fits');
  assert.equal(requestedOf([...busy, mine], 399), C0, 'only the small one fits');
  assert.equal(requestedOf([free, mine]), undefined, 'nobody holds it');
  assert.equal(requestedOf([mine]), undefined, 'it is our own');
  const idle = lease(clusterName('c3'), 'idle', { nodes: 0 });
  assert.equal(requestedOf([idle, ...busy, mine]), C1, 'of the busiest');
  // 100 of 1000 may move: the busier relay would keep a tenth more.
  const tenth = [lease(C0, 'busy', { nodes: 800 }), lease(C1, 'busy', { nodes: 0 })];
  assert.equal(requestedOf([...tenth, lease(clusterName('mine'), 'me', { nodes: 700 })]), C1);
  assert.equal(requestedOf([...tenth, lease(clusterName('mine'), 'me', { nodes: 701 })]), undefined);
});
