import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { askAgainAt, claimOf, hasTurn, TURNS_AHEAD_MS, turnsOf } from '#shared/eviction/rate.ts';
import { at } from './builders.ts';

describe('turns', () => {
  test('come one after the other, those of a second together', () => {
    assert.deepEqual(turnsOf(claimOf(5, 2), at(60), at(60)), [at(60), at(60), at(61), at(61), at(62)]);
  });

  test('count from when they are given until six seconds after their moment', () => {
    assert.equal(hasTurn({}, at(60)), false);
    assert.equal(hasTurn({ turnAt: at(60) }, at(50)), true);
    assert.equal(hasTurn({ turnAt: at(60) }, at(66)), true);
    assert.equal(hasTurn({ turnAt: at(60) }, at(66) + 1), false);
  });

  test('are never before they are asked for', () => {
    assert.deepEqual(turnsOf(claimOf(3, 2), at(60) + 700, at(60) + 700), [at(60) + 700, at(61), at(61)]);
  });

  test('are seldom at a rate of less than one a second', () => {
    assert.deepEqual(turnsOf(claimOf(3, 0.1), at(60), at(60)), [at(60), at(70), at(80)]);
  });

  test('are given out for a minute ahead, and one at least', () => {
    assert.deepEqual([claimOf(1000, 2).pods, claimOf(5, 0.001).pods], [120, 1]);
  });

  test('are asked for again at a full second, when those that are given out are over', () => {
    assert.equal(askAgainAt(at(60)), at(60) + TURNS_AHEAD_MS);
    assert.equal(askAgainAt(at(60) + 1), at(61) + TURNS_AHEAD_MS);
  });

  test('are never more than the rate allows in any span of time and a second more', () => {
    const claims = fc.array(fc.record({ waitMs: fc.nat(20_000), pods: fc.integer({ min: 1, max: 150 }) }), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(claims, fc.double({ min: 0.05, max: 300, noNaN: true }), (asked, rate) => {
        let now = at(60);
        let takenTo = now;
        const turns: number[] = [];
        for (const { waitMs, pods } of asked) {
          now += waitMs;
          const claim = claimOf(pods, rate);
          const from = Math.max(now, takenTo);
          takenTo = from + claim.takesMs;
          const given = turnsOf(claim, from, now);
          assert.ok(given.every((turn) => turn >= now));
          turns.push(...given);
        }
        turns.sort((a, b) => a - b);
        for (const [first, begin] of turns.entries()) {
          for (let last = first; last < turns.length; last++) {
            const seconds = ((turns[last] ?? 0) - begin) / 1000;
            assert.ok(
              last - first + 1 <= Math.ceil(rate * (seconds + 1)) + 1,
              `${last - first + 1} in ${seconds} s`,
            );
          }
        }
      }),
    );
  });
});
