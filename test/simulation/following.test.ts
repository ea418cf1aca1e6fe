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

test(`a cluster is known as it is after each of ${SEEDS.length} histories`, async (context) => {
  const time = driveTimers(context);
  for (const seed of SEEDS) {
    const { faults, story } = await followHistory(seed, time);
    if (FOLLOWING_SEED) context.diagnostic(story.join('\n'));
    assert.deepEqual(faults, [], [...faults, `replay this history with FOLLOWING_SEED=${seed}`].join('\n'));
  }
});

test('a seed tells the same story each time', async (context) => {
  const time = driveTimers(context);
  const [seed = 0] = SEEDS;
  const [first, second] = [await followHistory(seed, time), await followHistory(seed, time)];
  assert.deepEqual(first, second);
});
