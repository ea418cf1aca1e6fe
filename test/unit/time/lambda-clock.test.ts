import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

function invoked() {
  const host = new SteppedClock(Date.UTC(2026, 0, 1));
  const clock = new LambdaClock(host);
  clock.invoked();
  return { host, clock };
}

test('advances the stopwatch while the function is frozen', () => {
  const { host, clock } = invoked();
  host.pass(200);
  host.set(60_000);
  clock.invoked();
  assert.equal(clock.stopwatch(), 60_200);
  host.pass(100);
  host.set(5_000);
  clock.invoked();
  assert.equal(clock.stopwatch(), 65_300);
});

test('never decreases the stopwatch, or advances it within an invocation, when the clock is set', () => {
  const { host, clock } = invoked();
  host.pass(200);
  host.set(-60_000);
  assert.equal(clock.stopwatch(), 200);
  clock.invoked();
  assert.equal(clock.stopwatch(), 200);
  host.set(60_000);
  assert.equal(clock.stopwatch(), 200);
});
