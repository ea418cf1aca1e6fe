import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { simulate } from '#test/simulation/simulate.ts';

/** `SIMULATION_SEED=<number>` replays one history; `SIMULATION_HISTORIES=<number>` plays so many random ones. */
const { SIMULATION_SEED, SIMULATION_HISTORIES = '60' } = process.env;
const SEEDS = SIMULATION_SEED
  ? [Number(SIMULATION_SEED)]
  : Array.from({ length: Number(SIMULATION_HISTORIES) }, () => randomInt(2 ** 31));

test(`the service keeps its promises in ${SEEDS.length} random histories`, async (context) => {
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

test('a seed tells the same story each time', async () => {
  const [seed = 0] = SEEDS;
  const [first, second] = [await simulate(seed), await simulate(seed)];
  assert.deepEqual(first, second);
});
