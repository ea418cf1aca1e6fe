import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followHistory } from '#test/unit/engine/watch/followed-history.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

/** `FOLLOWING_SEED=<number>` replays one history; `FOLLOWING_FROM=<number>` plays other histories than usual. */
const { FOLLOWING_SEED, FOLLOWING_FROM = '0' } = process.env;
const HISTORIES = 20;
const SEEDS = FOLLOWING_SEED
  ? [Number(FOLLOWING_SEED)]
  : Array.from({ length: HISTORIES }, (_, index) => Number(FOLLOWING_FROM) + index);

test(`knows the actual state of the cluster after each of ${SEEDS.length} histories`, async (context) => {
  const time = driveTimers(context);
  for (const seed of SEEDS) {
    const { faults, story } = await followHistory(seed, time);
    if (FOLLOWING_SEED) context.diagnostic(story.join('\n'));
    assert.deepEqual(faults, [], [...faults, `replay this history with FOLLOWING_SEED=${seed}`].join('\n'));
  }
});

test('replays the same story for a seed', async (context) => {
  const time = driveTimers(context);
  const [seed = 0] = SEEDS;
  const [first, second] = [await followHistory(seed, time), await followHistory(seed, time)];
  assert.deepEqual(first, second);
});
