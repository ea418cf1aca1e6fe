import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseInt64Json, stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';

test('reads an integer beyond double precision exactly, as a bigint', () => {
  assert.deepEqual(parseInt64Json('{"a":9223372036854775807,"b":[-9223372036854775808]}'), {
    a: 9223372036854775807n,
    b: [-9223372036854775808n],
  });
});

for (const text of ['%', ' %\n', '[%]', '[1,%,1]', '[ %\t]', '{"a":%}', '{"a":\n%\n,"b":1}']) {
  test(`finds a long integer in ${JSON.stringify(text)}`, () => {
    const read = stringifyInt64Json({ read: parseInt64Json(text.replace('%', '-9007199254740993')) });
    assert.equal(read, `{"read":${text.replace('%', '-9007199254740993').replaceAll(/\s/g, '')}}`);
  });
}

test('reads every other number as a number', () => {
  const text = '[9007199254740991,-9007199254740991,0,1.5,1e300,1234567890123456.5,1e20,9223372036854775807]';
  const expected = [9007199254740991, -9007199254740991, 0, 1.5, 1e300, 1234567890123456.5, 1e20];
  assert.deepEqual(parseInt64Json(text), [...expected, 9223372036854775807n]);
});

test('keeps digits in strings as text, also next to long integers', () => {
  const value = {
    digest: 'sha256:12345678901234567890',
    id: '9223372036854775807',
    list: '[9223372036854775807]',
    text: 'took 9223372036854775807 ns, "9223372036854775807" \\',
    '\\"': ' 9223372036854775807 ',
  };
  assert.deepEqual(parseInt64Json(JSON.stringify(value)), value);
  const text = '{"id":"9223372036854775807","seconds":9223372036854775807}';
  assert.deepEqual(parseInt64Json(text), { id: '9223372036854775807', seconds: 9223372036854775807n });
});

test('writes a bigint of any size as a bare integer', () => {
  assert.equal(
    stringifyInt64Json({ a: 9223372036854775807n, b: [5n, 5] }),
    '{"a":9223372036854775807,"b":[5,5]}',
  );
});

test('reads written values back unchanged, whatever surrounds them', () => {
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
  fc.assert(
    fc.property(tree, (value) => assert.deepEqual(parseInt64Json(stringifyInt64Json({ value })), { value })),
  );
});

test('rejects invalid JSON, with or without long integers', () => {
  for (const text of ['', '{', '{"a":9223372036854775807', '09223372036854775807']) {
    assert.throws(() => parseInt64Json(text), SyntaxError);
  }
});
