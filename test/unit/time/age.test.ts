import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Age } from '#shared/time/age.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const TIME = fc.array(
  fc.record({ passMs: fc.nat({ max: 2 * MINUTE }), setMs: fc.integer({ min: -HOUR, max: HOUR }) }),
  { minLength: 1, maxLength: 6 },
);

describe('an age', () => {
  test('is between the stopwatch and the longer of both clocks', () => {
    fc.assert(
      fc.property(TIME, (steps) => {
        const clock = new SteppedClock(NOW);
        const age = new Age(clock);
        let passedMs = 0;
        for (const { passMs, setMs } of steps) {
          clock.set(setMs);
          clock.pass(passMs);
          passedMs += passMs;
        }
        assert.equal(age.atLeastMs, passedMs);
        assert.equal(age.atMostMs, Math.max(passedMs, clock.now() - NOW));
      }),
    );
  });

  test('is unknown if a clock without a stopwatch was set back', () => {
    let now = NOW;
    const age = new Age({ now: () => now });
    now -= 1;
    assert.equal(age.atMostMs, Number.POSITIVE_INFINITY);
  });
});
