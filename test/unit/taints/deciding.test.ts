import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { deadline } from '#shared/taints/deadline.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';
import { firstMatch } from '#shared/taints/match.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import * as arbitrary from './arbitraries.ts';

const tolerations = fc.array(arbitrary.toleration, { maxLength: 12 });
const taints = fc.array(arbitrary.taint, { maxLength: 5 });

const taint = (key: string, value = '') => ({ key, value, effect: 'NoExecute' });
const tolerating = (key: string, seconds: number): Toleration => ({
  key,
  operator: 'Exists',
  tolerationSeconds: BigInt(seconds),
});

/** Returns the indexes of the deciding tolerations of a list. */
const indexes = (taints: Parameters<typeof decidingTolerations>[0], ...list: readonly Toleration[]) =>
  decidingTolerations(taints)(list).map(({ index }) => index);
const virtual = (key: string) => ({ ...taint(key), effect: 'NoSchedule', virtual: true as const });
const asItIs = (key: string): Toleration => ({ key, operator: 'Exists', effect: 'NoSchedule' });

describe('the deciding tolerations', () => {
  test('have the same first match for every NoExecute taint as the whole list, with either option', () => {
    fc.assert(
      fc.property(tolerations, taints, arbitrary.options, (given, taints, options) => {
        const cut = decidingTolerations(taints)(given);
        for (const taint of taints.filter(({ effect }) => effect === 'NoExecute')) {
          const index = given.findIndex((toleration) => firstMatch([toleration], taint, options));
          const expected = index < 0 ? undefined : { ...given[index], index };
          assert.deepEqual(firstMatch(cut, taint, options), expected);
        }
      }),
    );
  });

  test('set the same deadline as the whole list, with either option', () => {
    const { moment, options } = arbitrary;
    const taints = fc.array(arbitrary.evictingTaint, { maxLength: 5 });
    fc.assert(
      fc.property(tolerations, taints, moment, options, (given, all, podSince, option) => {
        const cut = decidingTolerations(all)(given);
        assert.deepEqual(deadline(cut, all, podSince, option), deadline(given, all, podSince, option));
      }),
    );
  });

  test('are at most two for each taint, in list order, with their indexes', () => {
    fc.assert(
      fc.property(tolerations, taints, (given, taints) => {
        const cut = decidingTolerations(taints)(given);
        assert.ok(cut.length <= 2 * taints.length);
        let last = -1;
        for (const { index = -1, ...toleration } of cut) {
          assert.ok(index > last);
          assert.deepEqual(toleration, { ...given[index] });
          last = index;
        }
      }),
    );
  });

  test('are the first matches of each taint, whatever follows in the list', () => {
    const list = [tolerating('x', 1), tolerating('b', 2), tolerating('a', 3), tolerating('a', 4)];
    assert.deepEqual(decidingTolerations([taint('a'), taint('b')])(list), [
      { ...tolerating('b', 2), index: 1 },
      { ...tolerating('a', 3), index: 2 },
    ]);
  });

  test('include a match for servers with and for servers without comparison operators', () => {
    const greater: Toleration = { key: 'a', operator: 'Gt', value: '5' };
    const list = [greater, { ...greater, value: '6' }, tolerating('a', 3), tolerating('a', 4)];
    assert.deepEqual(indexes([taint('a', '9')], ...list), [0, 2]);
  });

  test('include the first NoSchedule match of a virtual taint only where no toleration matches it as NoExecute', () => {
    const greater = { key: 'a', operator: 'Gt', value: '5', effect: 'NoExecute' };
    assert.deepEqual(indexes([virtual('a')], tolerating('b', 1), asItIs('a'), asItIs('a')), [1]);
    assert.deepEqual(indexes([virtual('a')], asItIs('a'), tolerating('a', 1)), [1]);
    assert.deepEqual(indexes([virtual('a')], asItIs('a'), greater), [0]);
  });

  test('do not depend on the tolerations of another virtual taint', () => {
    const list = [asItIs('a'), { ...tolerating('a', 1), effect: 'NoExecute' }, asItIs('b')];
    assert.deepEqual(indexes([virtual('a'), virtual('b')], ...list), [1, 2]);
  });

  test('include a match for each of several taints with the same key', () => {
    const list = [
      { key: 'a', value: 'v' },
      { key: 'a', value: 'w' },
    ];
    assert.deepEqual(indexes([taint('a', 'v'), taint('a', 'w')], ...list), [0, 1]);
  });

  test('are empty where no taint evicts', () => {
    assert.deepEqual(indexes([{ ...taint('a'), effect: 'NoSchedule' }], { operator: 'Exists' }), []);
  });

  test('are computed once for all pods that share a list', () => {
    const shared = [tolerating('a', 1)];
    const cut = decidingTolerations([taint('a')]);
    assert.equal(cut(shared), cut(shared));
  });
});
