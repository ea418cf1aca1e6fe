import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clusterLoad, isWorthGiving, leaseToAskFor, loadOf } from '#shared/engine/watch/fleet.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { LeaseRecord } from '#shared/state/lease.ts';

const leaseOf = (index: number, holder: string, nodes: number): LeaseRecord => ({
  cluster: clusterName(`c${index}`),
  holder,
  epoch: 1,
  renewals: 0,
  renewedAt: 0,
  nodes,
});

/** Lets the relays request leases in turn until no relay wants one. Returns how many clusters moved. */
function settle(records: LeaseRecord[], relays: readonly string[], budget = Infinity): number {
  let moves = 0;
  for (let idle = 0; idle < relays.length; ) {
    const me = relays[(moves + idle) % relays.length] ?? '';
    const wanted = leaseToAskFor(records, me, budget);
    if (!wanted) {
      idle += 1;
      continue;
    }
    assert.ok(isWorthGiving(records, wanted, { holder: me, load: loadOf(records, me) }));
    records[records.findIndex(({ cluster }) => cluster === wanted.cluster)] = { ...wanted, holder: me };
    moves += 1;
    idle = 0;
    assert.ok(moves <= 10 * records.length, 'clusters move for ever');
  }
  return moves;
}

const relays = ['a', 'b', 'c', 'd'];
const fleet = fc.array(fc.record({ holder: fc.constantFrom(...relays), nodes: fc.nat(5_000) }), {
  maxLength: 60,
});

describe('shares', () => {
  test('become even, and then no cluster moves', () => {
    fc.assert(
      fc.property(fleet, (clusters) => {
        const records = clusters.map(({ holder, nodes }, index) => leaseOf(index, holder, nodes));
        settle(records, relays);
        assert.equal(settle(records, relays), 0);
        const loads = relays.map((relay) => loadOf(records, relay));
        const least = Math.min(...loads);
        // No move of a single cluster would clearly reduce the load of the busier relay.
        for (const record of records) {
          const load = loadOf(records, String(record.holder));
          if (record.holder && load > least) assert.ok(least + clusterLoad(record) > load * 0.9);
        }
      }),
    );
  });

  test('differ by at most a tenth, or by one, for equal clusters', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.integer({ min: 1, max: 4 }), (count, shares) => {
        const records = Array.from({ length: count }, (_, index) => leaseOf(index, 'a', 50));
        const some = relays.slice(0, shares);
        settle(records, some);
        const counts = some.map((relay) => records.filter(({ holder }) => holder === relay).length);
        const most = Math.max(...counts);
        assert.ok(most - Math.min(...counts) <= Math.max(1, most * 0.1 + 1), String(counts));
      }),
    );
  });

  test('need few moves, so that hardly any cluster moves twice', () => {
    const records = Array.from({ length: 12 }, (_, index) => leaseOf(index, 'a', 50));
    assert.ok(settle(records, ['a', 'b', 'c']) <= 10);
  });

  test('stay within the capacity of the requesting relay', () => {
    fc.assert(
      fc.property(fleet, fc.nat(20_000), (clusters, budget) => {
        const records = clusters.map(({ nodes }, index) => leaseOf(index, 'a', nodes));
        settle(records, relays, budget);
        for (const relay of ['b', 'c', 'd']) assert.ok(loadOf(records, relay) <= budget);
      }),
    );
  });
});

test('a holder decides again, and hands off nothing to a relay that got enough meanwhile', () => {
  const records = [leaseOf(1, 'a', 0), leaseOf(2, 'a', 0)];
  const [lease] = records;
  assert.ok(lease?.holder);
  const unchanged = { ...lease, holder: lease.holder };
  assert.equal(isWorthGiving(records, unchanged, { holder: 'b', load: 0 }), true);
  assert.equal(isWorthGiving(records, unchanged, { holder: 'b', load: 100 }), false);
});

test('a relay requests no lease that is free or already requested', () => {
  const [free, requested] = [leaseOf(1, 'a', 0), leaseOf(2, 'a', 0)];
  const { holder: _holder, ...released } = free;
  const records = [released, { ...requested, bid: { holder: 'c', load: 0 } }, leaseOf(3, 'a', 2000)];
  assert.equal(leaseToAskFor(records, 'b', Infinity), undefined);
});
