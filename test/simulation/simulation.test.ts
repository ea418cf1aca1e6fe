import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CLIMATE_NAMES } from './climates.ts';
import { pacedText } from './report.ts';
import { simulate } from './simulate.ts';
import { sweep } from './sweep.ts';

/** The numbers of histories with late answers, with waiting at a slow server, and with rates and limits, which take longest. */
const BELATED = 60;
const QUEUED = 15;
const PACED = 10;
const LIMITED = 15;

/** The number of short histories. A long one takes as much time as dozens of these. */
const SHORT = 80;

const seeds = (count: number): readonly number[] => Array.from({ length: count }, (_, seed) => seed);

test('keeps the promises in a long history of each climate, and in short ones', async (context) => {
  const long = await sweep(seeds(CLIMATE_NAMES.length), CLIMATE_NAMES);
  const short = await sweep(seeds(SHORT), ['brief', 'gusty', 'split']);
  for (const { played, compared, violations } of [long, short]) {
    assert.deepEqual(violations, []);
    const evictions = Object.values(played).reduce((total, each) => total + each.evictions, 0);
    context.diagnostic(`${evictions} evictions; compared with the naive model: ${JSON.stringify(compared)}`);
    assert.ok(evictions > CLIMATE_NAMES.length, 'there was hardly anything to do');
  }
  assert.ok(short.compared.exact > SHORT / 2, 'hardly anything was compared with the naive model');
  for (const promise of ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9'] as const)
    assert.ok(long.tried[promise] + short.tried[promise] > 0, `${promise} was never put to the test`);
});

test('keeps the promises when answers arrive late', async () => {
  const { violations, played } = await sweep(seeds(BELATED), ['belated', 'tardy']);
  assert.deepEqual(violations, []);
  assert.ok((played.belated?.evictions ?? 0) > BELATED / 2, 'there was hardly anything to do');
});

test('marks no pod whose eviction is forbidden, even after a long wait for a slot', async () => {
  const { violations, played } = await sweep(seeds(QUEUED), ['queued'], { governed: true });
  assert.deepEqual(violations, []);
  assert.ok((played.queued?.evictions ?? 0) > QUEUED, 'there was hardly anything to do');
});

test('keeps the rate limits in each span of time despite crashes', async (context) => {
  const { violations, paced } = await sweep(seeds(2 * PACED), ['paced', 'metered'], { governed: true });
  context.diagnostic(pacedText(paced));
  assert.deepEqual(violations, []);
  assert.ok(paced.windows > 200 * PACED, 'rates were hardly judged');
});

test('keeps the workload limits of policy in each window despite crashes', async () => {
  let limited = 0;
  for (const seed of seeds(LIMITED)) {
    const history = await simulate(seed, { climate: 'limited', governed: true });
    assert.deepEqual(history.faults, []);
    limited += history.limited;
  }
  assert.ok(limited > 2 * LIMITED, 'limits were hardly judged');
});

describe('the service keeps the promises when', () => {
  test('a node is deleted after it lost a taint unnoticed, and returns with that taint', async () => {
    assert.deepEqual((await simulate(2016, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a taint is set again, and its pod is evaluated much later', async () => {
    assert.deepEqual((await simulate(30532, { climate: 'stormy', governed: false })).faults, []);
  });

  test("the loss of a deleted node's taints is reported in the middle of a pass", async () => {
    assert.deepEqual((await simulate(30418, { climate: 'stormy', governed: false })).faults, []);
  });

  test('a taint changes and reverts while no relay is connected, and its node is deleted', async () => {
    assert.deepEqual((await simulate(300085, { climate: 'stormy', governed: false })).faults, []);
  });

  test('the return of a taint is reported in the middle of a pass', async () => {
    assert.deepEqual((await simulate(100220, { climate: 'stormy', governed: false })).faults, []);
  });
});

describe('the judge accepts', () => {
  test('a pod that becomes due retroactively while evictions wait for slots', async () => {
    assert.deepEqual((await simulate(10326692, { climate: 'slow', governed: true })).faults, []);
  });

  test('an eviction right after its would-evict report', async () => {
    assert.deepEqual((await simulate(10327739, { climate: 'slow', governed: true })).faults, []);
  });
});

test('replays the same story for a seed', async () => {
  for (const climate of ['fair', 'gusty'] as const) {
    const [first, second] = [await simulate(0, { climate }), await simulate(0, { climate })];
    assert.deepEqual(first, second);
  }
});
