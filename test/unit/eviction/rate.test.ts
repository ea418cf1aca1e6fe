import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { type AskingPod, type GivenPermits, givePermits, TURNS_AHEAD_MS } from '#shared/eviction/rate.ts';
import { at } from './builders.ts';

const pods = (count: number, more: Partial<AskingPod> = {}): readonly AskingPod[] =>
  Array.from({ length: count }, () => ({ uid: podUid('p'), drains: false, inTurn: false, ...more }));

const NEVER: GivenPermits = {};
const NONE = { permits: 0, at: at(60), takenTo: at(60) };

describe('permits', () => {
  test('cover the pods of one second together, and at least one pod', () => {
    for (const [evictionRate, most] of [
      [0.1, 1],
      [1, 1],
      [2.5, 3],
      [20, 20],
    ] as const) {
      const { turns } = givePermits(NEVER, pods(50), { evictionRate, releaseRate: 50 }, at(60));
      assert.equal(turns.filter((turn) => !turn).length, most);
    }
  });

  test('are available to a pod that is up to a second late, at a low rate', () => {
    let given = NEVER;
    for (const [second, delayMs] of [300, 20, 900, 0, 999].entries()) {
      const now = at(60 + 2 * second) + delayMs;
      const next = givePermits(given, pods(1, { inTurn: true }), { evictionRate: 0.5, releaseRate: 50 }, now);
      assert.deepEqual(next.turns, [undefined]);
      given = next.given;
    }
  });

  test('are unlimited without a rate, for pods that were not held', () => {
    const { turns, given } = givePermits(NEVER, pods(100), { releaseRate: 1 }, at(60));
    assert.ok(turns.every((turn) => turn === undefined));
    assert.deepEqual(given, { evictionRate: undefined, releaseRate: undefined });
  });

  test('do not return when a limit does not apply for a while', () => {
    const pace = { evictionRate: 2, releaseRate: 2 };
    const first = givePermits(NEVER, pods(2, { drains: true }), pace, at(60));
    const unlimited = givePermits(first.given, pods(2), { releaseRate: 2 }, at(60));
    assert.deepEqual(unlimited, { given: first.given, turns: [undefined, undefined] });
    for (const drains of [true, false]) {
      const limited = givePermits(unlimited.given, pods(1, { drains, inTurn: true }), pace, at(60));
      assert.notEqual(limited.turns[0], undefined);
    }
  });

  test('do not return when the clock is set back', () => {
    const first = givePermits(NEVER, pods(2), { evictionRate: 2, releaseRate: 50 }, at(70));
    const back = givePermits(
      first.given,
      pods(1, { inTurn: true }),
      { evictionRate: 2, releaseRate: 50 },
      at(60),
    );
    assert.notEqual(back.turns[0], undefined);
    const forth = givePermits(
      back.given,
      pods(1, { inTurn: true }),
      { evictionRate: 2, releaseRate: 50 },
      at(70),
    );
    assert.notEqual(forth.turns[0], undefined);
  });
});

describe('slots', () => {
  test('are full seconds, with several slots in a second', () => {
    const { turns } = givePermits(
      { evictionRate: NONE },
      pods(4),
      { evictionRate: 2, releaseRate: 50 },
      at(60) + 300,
    );
    assert.deepEqual(
      turns.map((turn) => turn?.turnAt),
      [at(61), at(61), at(62), at(62)],
    );
  });

  test('are rare at a rate below one a second', () => {
    const { turns } = givePermits(
      { evictionRate: NONE },
      pods(3),
      { evictionRate: 0.1, releaseRate: 50 },
      at(60),
    );
    assert.deepEqual(
      turns.map((turn) => turn?.turnAt),
      [at(70), at(80), at(90)],
    );
  });

  test('are requested again at a full second, after the slots that are reserved', () => {
    const far = { ...NONE, takenTo: at(125) };
    const reserve = (now: number) =>
      givePermits({ evictionRate: far }, pods(1), { evictionRate: 0.1, releaseRate: 50 }, now).turns;
    assert.deepEqual(reserve(at(60)), [{ notBefore: at(60) + TURNS_AHEAD_MS }]);
    assert.deepEqual(reserve(at(60) + 1), [{ notBefore: at(61) + TURNS_AHEAD_MS }]);
  });
});
