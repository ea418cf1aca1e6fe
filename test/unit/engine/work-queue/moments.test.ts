import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Moments, setAlarm } from '#shared/engine/work-queue/moments.ts';
import { drivenClock as clock, driveTimers } from '#test/world/driven-timers.ts';

describe('moments', () => {
  test('ring for each key once and in order of time, however they were added', async (context) => {
    const time = driveTimers(context, 0);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }), async (seconds) => {
        const startedAt = Date.now();
        const rung: number[] = [];
        const moments = new Moments<number>(clock, (key) => rung.push(key));
        for (const each of seconds) moments.add(each, startedAt + each * 1_000);
        await time.pass(41_000);
        assert.deepEqual(
          rung,
          [...new Set(seconds)].sort((one, other) => one - other),
        );
      }),
      { numRuns: 15 },
    );
  });

  test('that are cleared never ring, and keep no key for the same time later', async (context) => {
    const time = driveTimers(context, 0);
    const rung: string[] = [];
    const moments = new Moments<string>(clock, (key) => rung.push(key));
    moments.add('early', 5_000);
    moments.add('late', 9_000);
    moments.clear();
    await time.pass(6_000);
    assert.deepEqual(rung, []);
    moments.add('again', 9_000);
    await time.pass(6_000);
    assert.deepEqual(rung, ['again']);
  });
});

test('moments ring again for a time that the clock passes twice', async (context) => {
  const time = driveTimers(context, 0);
  let now = 0;
  const rung: string[] = [];
  const moments = new Moments<string>({ now: () => now }, (key) => rung.push(`${key} ${now}`));
  for (const at of [3_000, 4_000]) {
    moments.add('web', 3_000);
    now = at;
    await time.pass(2_000);
    now = 0;
  }
  assert.deepEqual(rung, ['web 3000', 'web 4000']);
});

test('an alarm rings by its clock, which may be set back, and never once it is canceled', async (context) => {
  const time = driveTimers(context, 0);
  let now = 0;
  const rung: number[] = [];
  setAlarm(clock, 3_000, () => rung.push(-1))();
  setAlarm({ now: () => now }, 2_000, () => rung.push(now));
  await time.pass(5_000);
  assert.deepEqual(rung, []);
  now = 2_000;
  await time.pass(2_000);
  assert.deepEqual(rung, [2_000]);
});
