import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { simulate } from '#test/simulation/simulate.ts';

const CLIMATES = ['brief', 'gusty', 'fair'] as const;
/** Of each climate. */
const HISTORIES = 8;

describe('where a stale control plane calls nodes unreachable that renew their Leases', () => {
  for (const governed of [false, true]) {
    test(`nobody is evicted while a Lease is fresh, and all are once it expired${governed ? ', whatever owners do' : ''}`, async () => {
      let evicted = 0;
      let held = 0;
      for (const climate of CLIMATES) {
        for (let seed = 0; seed < HISTORIES; seed++) {
          const history = await simulate(seed, { climate, governed, stale: true });
          assert.deepEqual(history.faults, [], `${climate} ${seed}`);
          evicted += history.evicted;
          held += history.story.filter((line) => line.includes('node-alive')).length;
        }
      }
      assert.ok(evicted > HISTORIES && held > HISTORIES, `${evicted} evicted, ${held} held`);
    });
  }
});
