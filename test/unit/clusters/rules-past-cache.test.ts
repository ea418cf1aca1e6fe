import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Rulings, rulesReader } from '#shared/clusters/rulebook.ts';
import { clusterName } from '#shared/eviction/identity.ts';

const C1 = clusterName('c1');

/** A reader whose clock stands still, on a rulebook whose guard is at `revision`. */
function bench() {
  const written = { revision: 3, reads: 0 };
  const rulebook = {
    read: async (): Promise<Rulings> => {
      written.reads += 1;
      const guard = { revision: written.revision, trips: [] };
      return { orders: { revision: 0, holds: [] }, guard, fleetRevision: 0 };
    },
  };
  const matching = { comparisonOperators: false };
  const read = rulesReader({ rulebook, matching, clock: { now: () => 0 } });
  return { written, read };
}

describe('rules that were read just now', () => {
  test('do for who knows of no newer guard', async () => {
    const { written, read } = bench();
    const rules = await read(C1);
    written.revision = 4;
    assert.equal(await read(C1), rules);
    assert.equal(await read(C1, 3), rules);
    assert.equal(written.reads, 1);
  });

  test('are read anew for who knows of a newer guard, once for all who do', async () => {
    const { written, read } = bench();
    await read(C1);
    written.revision = 4;
    const [one, other] = await Promise.all([read(C1, 4), read(C1, 4)]);
    assert.equal(one.guardRevision, 4);
    assert.equal(one, other);
    assert.equal(await read(C1), one);
    assert.equal(written.reads, 2);
  });
});
