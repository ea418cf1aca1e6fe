import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setAlarm } from '#shared/engine/work-queue/moments.ts';
import { systemClock } from '#shared/time/clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const DAY_MS = 24 * 3600 * 1000;

describe('an alarm', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW }));
  afterEach(() => mock.timers.reset());

  /** Returns a function that counts how often an alarm set to `at` fired. */
  function rung(at: number, clock = systemClock): () => number {
    let times = 0;
    setAlarm(clock, at, () => {
      times += 1;
    });
    return () => times;
  }

  test('fires once, on the millisecond', () => {
    const times = rung(NOW + 1500);
    mock.timers.tick(1499);
    assert.equal(times(), 0);
    mock.timers.tick(1);
    assert.equal(times(), 1);
    mock.timers.tick(DAY_MS);
    assert.equal(times(), 1);
  });

  test('fires immediately for a past time, but not within the call that set it', () => {
    const times = rung(NOW - DAY_MS);
    assert.equal(times(), 0);
    mock.timers.tick(1);
    assert.equal(times(), 1);
  });

  test('supports delays beyond the setTimeout maximum', () => {
    const times = rung(NOW + 100 * DAY_MS);
    for (let day = 0; day < 99; day++) mock.timers.tick(DAY_MS);
    assert.equal(times(), 0);
    mock.timers.tick(DAY_MS);
    assert.equal(times(), 1);
  });

  test('does not fire once it was canceled, however often it looked at the clock before', () => {
    let times = 0;
    const cancel = setAlarm(systemClock, NOW + 5_000, () => {
      times += 1;
    });
    mock.timers.tick(3_500);
    cancel();
    mock.timers.tick(DAY_MS);
    assert.equal(times, 0);
  });

  test("waits longer if a timeout ends before the clock's time", () => {
    let lagMs = 0;
    const times = rung(NOW + 10, { now: () => Date.now() - lagMs });
    lagMs = 3;
    mock.timers.tick(10);
    assert.equal(times(), 0);
    mock.timers.tick(3);
    assert.equal(times(), 1);
  });

  test('fires within a second when the clock is set forward beyond its time', () => {
    let setMs = 0;
    const times = rung(NOW + DAY_MS, { now: () => Date.now() + setMs });
    mock.timers.tick(DAY_MS / 2);
    setMs = DAY_MS;
    mock.timers.tick(1_000);
    assert.equal(times(), 1);
  });

  test('does not fire earlier by the clock when the clock is set back', () => {
    let setMs = 0;
    const times = rung(NOW + 10_000, { now: () => Date.now() + setMs });
    setMs = -5_000;
    mock.timers.tick(14_999);
    assert.equal(times(), 0);
    mock.timers.tick(1_000);
    assert.equal(times(), 1);
  });

  test('does not fire after cancellation', () => {
    let rang = false;
    const cancel = setAlarm(systemClock, NOW + 10, () => {
      rang = true;
    });
    mock.timers.tick(9);
    cancel();
    mock.timers.tick(DAY_MS);
    assert.equal(rang, false);
  });
});
