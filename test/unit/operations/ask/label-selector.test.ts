import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLabelSelector } from '#shared/operations/ask/label-selector.ts';

const KEY = 'topology.kubernetes.io/zone';
/** kubectl's forms of a selector. */
const FORMS: Readonly<Record<string, ReturnType<typeof parseLabelSelector>>> = {
  [`${KEY}=a`]: [{ key: KEY, operator: 'In', values: ['a'] }],
  'Zone == a_1.B': [{ key: 'Zone', operator: 'In', values: ['a_1.B'] }],
  'zone=': [{ key: 'zone', operator: 'In', values: [''] }],
  'zone != a': [{ key: 'zone', operator: 'NotIn', values: ['a'] }],
  'zone in (a, b),gpu': [
    { key: 'zone', operator: 'In', values: ['a', 'b'] },
    { key: 'gpu', operator: 'Exists' },
  ],
  'zone notin(a) , !gpu': [
    { key: 'zone', operator: 'NotIn', values: ['a'] },
    { key: 'gpu', operator: 'DoesNotExist' },
  ],
};
for (const [text, expressions] of Object.entries(FORMS))
  test(`reads ${text} as kubectl does`, () => assert.deepEqual(parseLabelSelector(text), expressions));

for (const text of ['', 'a,', 'a b', 'a=b=c', 'a in b', 'a in (b', '-a', 'a=-', 'A.b/c', 'a/b/c'])
  test(`rejects "${text}"`, () =>
    assert.throws(() => parseLabelSelector(text), { name: 'LabelSelectorError' }));
