import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toAttribute, toItem } from '#shared/store/attribute-values.ts';

describe('attribute values', () => {
  test('numbers are written in full', () => {
    assert.deepEqual(toAttribute(8.64e15), { N: '8640000000000000' });
  });

  test('a field that is undefined is left out', () => {
    assert.deepEqual(toItem({ a: undefined, b: { c: undefined, d: 'x' } }), { b: { M: { d: { S: 'x' } } } });
  });
});
