import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PLANTED_DEFECTS } from '#test/simulation/planted-defects.ts';
import { simulate } from '#test/simulation/simulate.ts';

/** `SIMULATION_SEED=<number>` replays one history; `SIMULATION_FROM=<number>` plays other histories than usual. */
const { SIMULATION_SEED, SIMULATION_FROM = '0' } = process.env;
const HISTORIES = 20;
const SEEDS = SIMULATION_SEED
  ? [Number(SIMULATION_SEED)]
  : Array.from({ length: HISTORIES }, (_, index) => Number(SIMULATION_FROM) + index);
/** So many histories are played at most until a planted defect shows. */
const UNTIL_CAUGHT = 60;

test(`the service keeps its promises in ${SEEDS.length} histories`, async (context) => {
  let evictions = 0;
  for (const seed of SEEDS) {
    const { faults, story, climate, evicted } = await simulate(seed);
    evictions += evicted;
    if (SIMULATION_SEED) context.diagnostic(story.join('\n'));
    const broken = [...faults, `replay this ${climate} history with SIMULATION_SEED=${seed}`].join('\n');
    assert.deepEqual(faults, [], broken);
  }
  context.diagnostic(`${evictions} pods were evicted`);
  assert.ok(SIMULATION_SEED || evictions > SEEDS.length, 'there was hardly anything to do');
});

describe('a history that once broke a promise keeps it:', () => {
  test('a node is deleted after it lost a taint unheard, and comes back with it', async () => {
    assert.deepEqual((await simulate(2016, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a taint is set anew, and its pod looked at much later', async () => {
    assert.deepEqual((await simulate(30532, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a node is gone, and that it had lost its taints before is told in the middle of a pass', async () => {
    assert.deepEqual((await simulate(30418, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a taint is set anew and as it was again while nobody hears, and its node goes', async () => {
    assert.deepEqual((await simulate(300085, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a taint is told to have come back in the middle of a pass', async () => {
    assert.deepEqual((await simulate(100220, { climate: 'stormy', governed: false })).faults, []);
  });
});

test('a seed tells the same story each time', async () => {
  const [seed = 0] = SEEDS;
  const [first, second] = [await simulate(seed), await simulate(seed)];
  assert.deepEqual(first, second);
});

describe('the simulation finds out when', () => {
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
});
