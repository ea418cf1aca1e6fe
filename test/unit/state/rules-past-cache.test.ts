import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { rulesReader, type StoredFleetRules, type StoredRules } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';

const C1 = clusterName('c1');

/** A reader with a fixed clock, on a rules store whose guard has the given `revision`. */
function bench() {
  const written = { revision: 3, reads: 0 };
  const rulesStore = {
    read: async (): Promise<StoredRules> => {
      written.reads += 1;
      const guard = { revision: written.revision, trips: [] };
      return { orders: { revision: 0, stops: [], holds: [] }, guard, fleetRevision: 0 };
    },
  };
  const matching = { comparisonOperators: false };
  const read = rulesReader({ rulesStore, matching, clock: { now: () => 0 } });
  return { written, read };
}

describe('recently read rules', () => {
  test('are returned to a caller that requires no newer guard', async () => {
    const { written, read } = bench();
    const rules = await read(C1);
    written.revision = 4;
    assert.equal(await read(C1), rules);
    assert.equal(await read(C1, 3), rules);
    assert.equal(written.reads, 1);
  });

  test('are read again once for all callers that require a newer guard', async () => {
    const { written, read } = bench();
    await read(C1);
    written.revision = 4;
    const [one, other] = await Promise.all([read(C1, 4), read(C1, 4)]);
    assert.equal(one.guardRevision, 4);
    assert.equal(one, other);
    assert.equal(await read(C1), one);
    assert.equal(written.reads, 2);
  });

  test("are not used while the guard's decision is not stored", async () => {
    const { written, read } = bench();
    await read(C1);
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(read(C1, 4), (error) => {
        assert.ok(error instanceof StoreError);
        return /^What the guard of c1 decided is not stored \(revision 4; stored: 3\)/.test(error.message);
      });
    }
    assert.equal((await read(C1)).guardRevision, 3);
    written.revision = 4;
    assert.equal((await read(C1, 4)).guardRevision, 4);
  });
});

describe('fleet-wide rules', () => {
  /** A reader on a rules store that records the clusters for which fleet-wide rules were read. The rules of `c0` can't be read. */
  function fleetBench() {
    const time = { now: 0 };
    const written = { fleetRevision: 1 };
    const readFor: ClusterName[] = [];
    const rulesStore = {
      read: async (cluster: ClusterName, fleet?: StoredFleetRules): Promise<StoredRules> => {
        if (!fleet) readFor.push(cluster);
        const { fleetRevision } = fleet ?? written;
        if (cluster === clusterName('c0')) throw new StoreError('a newer release wrote that');
        return {
          orders: { revision: 0, stops: [], holds: [] },
          guard: { revision: 0, trips: [] },
          fleetRevision,
        };
      },
    };
    const clock = { now: () => time.now };
    return {
      time,
      written,
      readFor,
      read: rulesReader({ rulesStore, matching: { comparisonOperators: false }, clock }),
    };
  }
  const clusters = ['c1', 'c2', 'c3'].map(clusterName);

  test('are read only with the first of many clusters, even concurrently', async () => {
    const { readFor, read } = fleetBench();
    await Promise.all(clusters.map((cluster) => read(cluster)));
    await read(clusterName('c4'));
    assert.deepEqual(readFor, [C1]);
  });

  test('are cached for 0.7 s, together with all clusters read in the meantime', async () => {
    const { time, written, readFor, read } = fleetBench();
    await read(C1);
    time.now = 699;
    const [, c2 = C1] = clusters;
    const before = await read(c2);
    written.fleetRevision = 2;
    time.now = 700;
    assert.notEqual(await read(c2), before);
    assert.equal((await read(c2)).ordersRevision, 2);
    assert.deepEqual(readFor, [C1, c2]);
  });

  test("are read with another cluster if the first can't be read", async () => {
    const { readFor, read } = fleetBench();
    const unreadable = clusterName('c0');
    const [refused, read1] = await Promise.allSettled([read(unreadable), read(C1)]);
    assert.deepEqual([refused.status, read1.status], ['rejected', 'fulfilled']);
    assert.deepEqual(readFor, [unreadable, C1]);
  });
});
