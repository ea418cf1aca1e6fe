import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { matchesLabels } from '#shared/eviction/gate.ts';
import type { LabelExpression, LabelSelector } from '#shared/eviction/selectors.ts';
import { contradiction } from '#shared/eviction/selectors.ts';

const KEYS = ['app', 'tier'];
const VALUES = ['1', '2', '3'];

const key = fc.constantFrom(...KEYS);
const values = fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1 });
const expression: fc.Arbitrary<LabelExpression> = fc.oneof(
  fc.record({ key, operator: fc.constantFrom('In' as const, 'NotIn' as const), values }),
  fc.record({ key, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) }),
);
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  {
    matchLabels: fc.dictionary(key, fc.constantFrom(...VALUES), { noNullPrototype: true }),
    matchExpressions: fc.array(expression, { maxLength: 5 }),
  },
  { requiredKeys: [] },
);

/** All sets of these labels, each absent or with one of the values or with another value. */
const ALL_LABELS: readonly Readonly<Record<string, string>>[] = KEYS.reduce<Record<string, string>[]>(
  (all, selected) =>
    all.flatMap((labels) => [
      labels,
      ...[...VALUES, 'other'].map((value) => ({ ...labels, [selected]: value })),
    ]),
  [{}],
);

test('reports a contradiction exactly for selectors that match no labels', () => {
  fc.assert(
    fc.property(selector, (generated) => {
      const matchesSome = ALL_LABELS.some((labels) => matchesLabels(generated, labels));
      assert.equal(contradiction(generated) === undefined, matchesSome);
    }),
    { numRuns: 2_000 },
  );
});

describe('a contradiction names the conditions on the label:', () => {
  const cases: readonly (readonly [LabelSelector, readonly string[]])[] = [
    [
      {
        matchLabels: { app: '1', tier: 'web' },
        matchExpressions: [{ key: 'app', operator: 'In', values: ['2', '3'] }],
      },
      ['app=1', 'app in (2, 3)'],
    ],
    [
      {
        matchExpressions: [
          { key: 'app', operator: 'In', values: ['1'] },
          { key: 'app', operator: 'NotIn', values: ['1'] },
        ],
      },
      ['app=1', 'app!=1'],
    ],
    [
      {
        matchExpressions: [
          { key: 'tier', operator: 'Exists' },
          { key: 'app', operator: 'Exists' },
          { key: 'app', operator: 'DoesNotExist' },
        ],
      },
      ['app', '!app'],
    ],
  ];
  for (const [labels, conditions] of cases)
    test(conditions.join(' and '), () => assert.deepEqual(contradiction(labels), conditions));
});
