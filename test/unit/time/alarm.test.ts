import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Alarm } from '#shared/time/alarm.ts';
import { systemClock } from '#shared/time/clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const DAY_MS = 24 * 3600 * 1000;

describe('Alarm', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW }));
  afterEach(() => mock.timers.reset());

  /** How often an alarm set to `at` rang so far. */
  function rung(at: number, clock = systemClock): () => number {
    let times = 0;
    new Alarm(clock, at, () => {
      times += 1;
    });
    return () => times;
  }

  test('rings once, on the millisecond', () => {
    const times = rung(NOW + 1500);
    mock.timers.tick(1499);
    assert.equal(times(), 0);
    mock.timers.tick(1);
    assert.equal(times(), 1);
    mock.timers.tick(DAY_MS);
    assert.equal(times(), 1);
  });

  test('rings at once when its moment is past, but not within the call that set it', () => {
    const times = rung(NOW - DAY_MS);
    assert.equal(times(), 0);
    mock.timers.tick(1);
    assert.equal(times(), 1);
  });

  test('reaches further than setTimeout does', () => {
    const times = rung(NOW + 100 * DAY_MS);
    for (let day = 0; day < 99; day++) mock.timers.tick(DAY_MS);
    assert.equal(times(), 0);
    mock.timers.tick(DAY_MS);
    assert.equal(times(), 1);
  });

  test('waits on when a timeout ends before the clock says so', () => {
    let lagMs = 0;
    const times = rung(NOW + 10, { now: () => Date.now() - lagMs });
    lagMs = 3;
    mock.timers.tick(10);
    assert.equal(times(), 0);
    mock.timers.tick(3);
    assert.equal(times(), 1);
  });

  test('rings within a second when the clock is set forward beyond its moment', () => {
    let setMs = 0;
    const times = rung(NOW + DAY_MS, { now: () => Date.now() + setMs });
    mock.timers.tick(DAY_MS / 2);
    setMs = DAY_MS;
    mock.timers.tick(1_000);
    assert.equal(times(), 1);
  });

  test('rings no sooner by the clock when that is set back', () => {
    let setMs = 0;
    const times = rung(NOW + 10_000, { now: () => Date.now() + setMs });
    setMs = -5_000;
    mock.timers.tick(14_999);
    assert.equal(times(), 0);
    mock.timers.tick(1_000);
    assert.equal(times(), 1);
  });

  test('rings no more once cancelled', () => {
    let rang = false;
    const alarm = new Alarm(systemClock, NOW + 10, () => {
      rang = true;
    });
    mock.timers.tick(9);
    alarm.cancel();
    mock.timers.tick(DAY_MS);
    assert.equal(rang, false);
  });
});
