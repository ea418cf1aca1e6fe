import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson, withoutNulls } from '#simulator/objects/json.ts';

test('an integer that a double cannot hold becomes a bigint, exactly', () => {
  assert.deepEqual(parseJson('{"a":9223372036854775807,"b":[-9223372036854775808, 5]}'), {
    a: 9223372036854775807n,
    b: [-9223372036854775808n, 5],
  });
});

test('every other number stays a number, and digits in a text stay text', () => {
  const text =
    '[9007199254740991,-9007199254740991,0,1.5,1e300,1234567890123456.5,1e20,"9223372036854775807"]';
  const expected = [9007199254740991, -9007199254740991, 0, 1.5, 1e300, 1234567890123456.5, 1e20];
  assert.deepEqual(parseJson(text), [...expected, '9223372036854775807']);
});

test('what was written is read back', () => {
  const unsafe = fc.bigInt().filter((number) => !Number.isSafeInteger(Number(number)));
  const { tree } = fc.letrec<{ tree: unknown; leaf: unknown }>((tie) => ({
    leaf: fc.oneof(unsafe, fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    tree: fc.oneof(
      { depthSize: 'small' },
      tie('leaf'),
      fc.array(tie('tree')),
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        tie('tree'),
        { noNullPrototype: true },
      ),
    ),
  }));
  fc.assert(fc.property(tree, (value) => assert.deepEqual(parseJson(stringifyJson({ value })), { value })));
});

test('a bigint is written as a bare integer, large or small', () => {
  assert.equal(stringifyJson({ a: 9223372036854775807n, b: [5n, 5] }), '{"a":9223372036854775807,"b":[5,5]}');
});

test('a text that is not JSON is refused', () => {
  for (const text of ['', '{', '09223372036854775807']) assert.throws(() => parseJson(text), SyntaxError);
});

test('fields that are null are left out, items of a list are not', () => {
  assert.deepEqual(withoutNulls({ a: null, b: { c: null, d: 1 }, e: [null, { f: null }] }), {
    b: { d: 1 },
    e: [null, {}],
  });
});
