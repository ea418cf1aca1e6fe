import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changed, changesOf } from './changes.ts';

const json = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(0, 1, 'a', true),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
    ),
  }))
  .value.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

test('applying the changes between two values yields the second value', () => {
  fc.assert(
    fc.property(json, json, (before, after) =>
      assert.deepEqual(changed({ before }, changesOf({ before }, { before: after })), { before: after }),
    ),
  );
});

test('changes contain only differences', () => {
  const before = { kept: [1, 2], list: [1, { a: 1, b: 2 }], longer: ['x', 'z'], old: 1 };
  const after = { kept: [1, 2], list: [1, { a: 1, b: 3 }], longer: ['x', 'y', 'z'], fresh: 1 };
  assert.deepEqual(changesOf(before, after), {
    list: { entries: { 1: { b: 3 } } },
    longer: { at: 1, gone: 0, come: ['y'] },
    old: '(gone)',
    fresh: 1,
  });
});
