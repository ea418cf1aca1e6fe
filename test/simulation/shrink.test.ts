import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PLANTED_DEFECTS } from '#test/simulation/planted-defects.ts';
import { replayOf, shrink, storyOf } from '#test/simulation/shrink.ts';
import { simulate } from '#test/simulation/simulate.ts';
import { brokenBy } from '#test/simulation/sweep.ts';

const SEEDS = Array.from({ length: 20 }, (_, seed) => seed);

test('shortens a history while it breaks the same promise, and prints its story', async () => {
  const { fault } = PLANTED_DEFECTS['a timer is armed by nobody'] ?? {};
  assert.ok(fault);
  const options = { climate: 'gusty', governed: false, fault } as const;
  for (const seed of SEEDS) {
    const shrunk = await shrink(seed, options);
    if (!shrunk) continue;
    const { changed, leftOut = [] } = shrunk.options;
    const whole = await simulate(seed, options);
    assert.equal(brokenBy(shrunk.fault), brokenBy(whole.faults[0] ?? ''));
    assert.ok(leftOut.length > 0, 'everything that was planned is needed');
    assert.equal(changed?.trouble, 0);
    assert.ok(shrunk.history.story.length < whole.story.length);
    assert.ok(storyOf(shrunk).some((line) => /^\S+ pod uid=c1\.p\d+\.\d+ node=n1 .*tolerations=/.test(line)));
    assert.match(
      replayOf(seed, shrunk.options),
      /--climate gusty --governed no --set .*trouble=0.* --without .* --story$/,
    );
    assert.deepEqual((await simulate(seed, shrunk.options)).faults, shrunk.history.faults);
    return;
  }
  assert.fail('no promise was broken');
});

test('returns nothing for a history that keeps all promises', async () => {
  assert.equal(await shrink(0, { climate: 'brief', governed: false }), undefined);
});
