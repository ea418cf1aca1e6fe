import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  apartText,
  areApart,
  earliestNow,
  latestNow,
  observedNow,
  type SkewRange,
} from '#shared/eviction/skew.ts';

const NOW = Date.UTC(2026, 10, 21, 11);
const skewOf = (leastMs: number, mostMs = leastMs): SkewRange => ({ leastMs, mostMs });

const range = fc
  .tuple(fc.integer({ min: -90_000, max: 90_000 }), fc.integer({ min: 0, max: 20_000 }))
  .map(([leastMs, widthMs]) => skewOf(leastMs, leastMs + widthMs));

describe('the time by several clocks', () => {
  test('is our own where no clock answered, and where they differ by at most two seconds', () => {
    for (const skews of [[], [skewOf(-2_000, 2_000)], [skewOf(0), skewOf(1_999)]]) {
      assert.equal(earliestNow(NOW, skews), NOW);
      assert.equal(latestNow(NOW, skews), NOW);
    }
  });

  test('is the API server’s time for an observation where every clock that answered is far off', () => {
    assert.equal(observedNow(NOW, [skewOf(-90_000)]), NOW - 90_000);
    assert.equal(observedNow(NOW, [skewOf(90_000)]), NOW + 90_000);
    assert.equal(observedNow(NOW, [skewOf(-90_000), skewOf(5_000)]), NOW + 5_000);
    assert.equal(observedNow(NOW, [skewOf(5_000)]), NOW + 5_000);
  });

  test('is never later than the earliest clock, and never earlier than the latest, except for two seconds', () => {
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 4 }),
        fc.nat(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (skews, which, part) => {
          const { leastMs, mostMs } = skews[which % Math.max(1, skews.length)] ?? skewOf(0);
          const theirs = NOW + leastMs + part * (mostMs - leastMs);
          assert.ok(earliestNow(NOW, skews) <= Math.min(NOW, theirs + 2_000));
          assert.ok(latestNow(NOW, skews) >= Math.max(NOW, theirs - 2_000));
        },
      ),
    );
  });

  test('is a whole number of milliseconds, as deadlines are', () => {
    const skews = [skewOf(-4_000.4, -3_000.6), skewOf(3_000.2, 4_000.4)];
    assert.equal(earliestNow(NOW, skews), NOW - 4_001);
    assert.equal(latestNow(NOW, skews), NOW + 4_001);
  });
});

describe('differing clocks', () => {
  test('all differ by more than 30 s, for any time in their ranges', () => {
    assert.equal(areApart([]), false);
    assert.equal(areApart([skewOf(30_000)]), false);
    assert.equal(areApart([skewOf(30_001)]), true);
    assert.equal(areApart([skewOf(-40_000, -30_001)]), true);
    // The answer was slow.
    assert.equal(areApart([skewOf(-40_000, -29_000)]), false);
    // The clock of one of the two API servers agrees with ours.
    assert.equal(areApart([skewOf(-60_000), skewOf(0, 1_000)]), false);
    assert.equal(areApart([skewOf(-60_000), skewOf(60_000)]), true);
  });

  test('are named with their least difference', () => {
    assert.equal(apartText([skewOf(0)], 'evict'), undefined);
    assert.equal(apartText([skewOf(-40_000, 0)], 'evict'), undefined);
    const behind = "the API server's clock is at least 3m59s behind the clock of evict";
    assert.equal(apartText([skewOf(0), skewOf(-241_000, -239_500)], 'evict'), behind);
    const ahead = "the API server's clock is at least 1m ahead of the clock of evict";
    assert.equal(apartText([skewOf(60_100, 62_000)], 'evict'), ahead);
  });
});
