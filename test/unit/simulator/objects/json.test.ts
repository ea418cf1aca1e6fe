import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson, withoutNulls } from '#simulator/objects/json.ts';

test('reads an integer beyond double precision exactly, as a bigint', () => {
  assert.deepEqual(parseJson('{"a":9223372036854775807,"b":[-9223372036854775808, 5]}'), {
    a: 9223372036854775807n,
    b: [-9223372036854775808n, 5],
  });
});

test('reads every other number as a number and keeps digits in strings', () => {
  const text =
    '[9007199254740991,-9007199254740991,0,1.5,1e300,1234567890123456.5,1e20,"9223372036854775807"]';
  const expected = [9007199254740991, -9007199254740991, 0, 1.5, 1e300, 1234567890123456.5, 1e20];
  assert.deepEqual(parseJson(text), [...expected, '9223372036854775807']);
});

test('reads written values back unchanged', () => {
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

test('writes a bigint of any size as a bare integer', () => {
  assert.equal(stringifyJson({ a: 9223372036854775807n, b: [5n, 5] }), '{"a":9223372036854775807,"b":[5,5]}');
});

test('rejects invalid JSON', () => {
  for (const text of ['', '{', '09223372036854775807']) assert.throws(() => parseJson(text), SyntaxError);
});

test('omits null fields, but not null items of a list', () => {
  assert.deepEqual(withoutNulls({ a: null, b: { c: null, d: 1 }, e: [null, { f: null }] }), {
    b: { d: 1 },
    e: [null, {}],
  });
});
