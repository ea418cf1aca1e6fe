import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { simulate } from '#test/simulation/simulate.ts';

const CLIMATES = ['brief', 'gusty', 'fair'] as const;
/** Number of histories per climate. */
const HISTORIES = 8;

describe('nodes that a stale control plane calls unreachable although they renew their Leases', () => {
  for (const governed of [false, true]) {
    test(`keep their pods while a Lease is valid and lose them all after it expired${governed ? ', whatever owners do' : ''}`, async () => {
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
