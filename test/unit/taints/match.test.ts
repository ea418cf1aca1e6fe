import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { firstMatch, tolerates } from '#shared/taints/match.ts';
import type { Taint, Toleration } from '#shared/taints/taint.ts';
import * as arbitrary from './arbitraries.ts';

const gateOn = { comparisonOperators: true };
const gateOff = { comparisonOperators: false };

const effect = 'NoSchedule';
const valued: Taint = { key: 'foo', value: 'bar', effect };
const valueless: Taint = { key: 'foo', effect };

/**
 * The cases of upstream's `TestTolerationToleratesTaint`, and cases that upstream's validation rejects before
 * matching.
 */
const ROWS: Readonly<Record<string, readonly [Taint, Toleration, tolerated: boolean]>> = {
  'Exists tolerates a taint without value': [valueless, { key: 'foo', operator: 'Exists', effect }, true],
  'Exists tolerates a taint with any value': [valued, { key: 'foo', operator: 'Exists', effect }, true],
  'Exists without key tolerates every taint of its effect': [valued, { operator: 'Exists', effect }, true],
  'Equal tolerates the same value': [valued, { key: 'foo', operator: 'Equal', value: 'bar', effect }, true],
  'Equal does not tolerate another value': [valued, { key: 'foo', operator: 'Equal', value: 'baz' }, false],
  'another effect is not tolerated': [
    { ...valued, effect: 'NoExecute' },
    { key: 'foo', operator: 'Equal', value: 'bar', effect },
    false,
  ],
  'no operator means Equal': [valued, { key: 'foo', value: 'bar' }, true],
  'an empty toleration tolerates a taint without value': [valueless, {}, true],
  'an empty toleration does not tolerate a taint with a value': [valued, {}, false],
  'keys are not trimmed': [valued, { key: 'foo ', operator: 'Exists' }, false],
};

for (const [name, [taint, toleration, tolerated]] of Object.entries(ROWS)) {
  test(name, () => {
    for (const gate of [gateOff, gateOn]) assert.equal(tolerates(taint, toleration, gate), tolerated);
  });
}

const numeric = (value: string): Taint => ({ key: 'sla', value, effect: 'NoExecute' });
const comparing = (operator: string, value: string): Toleration => ({ key: 'sla', operator, value });

test('Gt and Lt compare every int64 as BigInt does, with the taint on the left', () => {
  fc.assert(
    fc.property(arbitrary.int64, arbitrary.int64, (left, right) => {
      const taint = numeric(String(left));
      assert.equal(tolerates(taint, comparing('Gt', String(right)), gateOn), left > right);
      assert.equal(tolerates(taint, comparing('Lt', String(right)), gateOn), left < right);
    }),
  );
});

test('Gt and Lt distinguish adjacent integers that doubles cannot, and do not match equal numbers', () => {
  const [low, high] = ['9007199254740992', '9007199254740993'];
  assert.equal(tolerates(numeric(high), comparing('Gt', low), gateOn), true);
  assert.equal(tolerates(numeric(low), comparing('Lt', high), gateOn), true);
  assert.equal(tolerates(numeric(low), comparing('Gt', high), gateOn), false);
  for (const operator of ['Gt', 'Lt'])
    assert.equal(tolerates(numeric(low), comparing(operator, low), gateOn), false);
});

test('matches nothing with an operator that Kubernetes does not define', () => {
  for (const operator of ['In', 'exists', 'gt'])
    assert.equal(tolerates(numeric('5'), comparing(operator, '5'), gateOn), false);
});

const NO_NUMBERS = ['', 'high', '007', '+5', '-0', '1.5', ' 5', String(2n ** 63n), String(-(2n ** 63n) - 1n)];
for (const text of NO_NUMBERS) {
  test(`Gt and Lt match nothing when a side is ${JSON.stringify(text)}`, () => {
    for (const operator of ['Gt', 'Lt']) {
      assert.equal(tolerates(numeric(text), comparing(operator, '1'), gateOn), false);
      assert.equal(tolerates(numeric('1'), comparing(operator, text), gateOn), false);
    }
  });
}

test('Gt and Lt match nothing while the feature gate is off', () => {
  fc.assert(
    fc.property(
      arbitrary.taint,
      arbitrary.toleration,
      fc.constantFrom('Gt', 'Lt'),
      (taint, toleration, operator) => {
        assert.equal(tolerates(taint, { ...toleration, operator }, gateOff), false);
      },
    ),
  );
});

test('ignores tolerationSeconds', () => {
  fc.assert(
    fc.property(
      arbitrary.taint,
      arbitrary.toleration,
      arbitrary.seconds,
      arbitrary.options,
      (taint, toleration, tolerationSeconds, options) => {
        const before = tolerates(taint, toleration, options);
        assert.equal(tolerates(taint, { ...toleration, tolerationSeconds }, options), before);
      },
    ),
  );
});

test('treats an absent field as empty', () => {
  fc.assert(
    fc.property(arbitrary.taint, arbitrary.toleration, arbitrary.options, (taint, toleration, options) => {
      const spelledOut = { key: '', operator: '', value: '', effect: '', ...toleration };
      const before = tolerates(taint, toleration, options);
      assert.equal(tolerates({ value: '', ...taint }, spelledOut, options), before);
    }),
  );
});

test('returns the first of several matching tolerations', () => {
  const list = [
    { key: 'other', operator: 'Exists' },
    { key: 'foo', operator: 'Exists' },
    { operator: 'Exists' },
  ];
  assert.equal(firstMatch(list, valued, gateOff), list[1]);
  assert.equal(firstMatch([], valued, gateOff), undefined);
});
