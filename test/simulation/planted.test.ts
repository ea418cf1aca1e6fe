import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClimateName } from './climates.ts';
import { hunt, UNTIL_CAUGHT } from './planted.ts';
import { PLANTED_DEFECTS } from './planted-defects.ts';
import { PLANTED_KINDS } from './planted-kinds.ts';
import { PLANTED_SOURCES } from './planted-sources.ts';
import { simulate } from './simulate.ts';

const SHORT: readonly ClimateName[] = ['brief', 'belated', 'paced', 'metered', 'limited', 'queued'];

describe('the simulation detects when', () => {
  for (const [name, defect] of Object.entries(PLANTED_DEFECTS)) {
    test(name, async (context) => {
      for (let seed = 0; seed < UNTIL_CAUGHT; seed++) {
        const { faults } = await simulate(seed, defect);
        if (faults.length === 0) continue;
        context.diagnostic(`caught after ${seed + 1} histories: ${faults[0]}`);
        return;
      }
      assert.fail(`not caught in ${UNTIL_CAUGHT} histories`);
    });
  }

  for (const [name, { play }] of Object.entries(PLANTED_KINDS)) {
    test(name, async (context) => {
      const played = await play();
      for (let seed = 0; seed < UNTIL_CAUGHT; seed++) {
        const { faults } = await played(seed);
        if (faults.length === 0) continue;
        context.diagnostic(`caught after ${seed + 1} histories: ${faults[0]}`);
        return;
      }
      assert.fail(`not caught in ${UNTIL_CAUGHT} histories`);
    });
  }

  // Each defect is loaded in a thread of its own, with the whole service. Only those that show in short histories take a second
  // or less.
  const brief = Object.entries(PLANTED_SOURCES).filter(
    ([, { shows }]) => 'kind' in shows || SHORT.includes(shows.climate),
  );
  for (const [name] of brief) {
    test(name, async (context) => {
      const { histories, fault } = await hunt({ name, most: UNTIL_CAUGHT });
      assert.ok(fault !== undefined, `not caught in ${histories} histories`);
      context.diagnostic(`caught after ${histories} histories: ${fault}`);
    });
  }
});
