import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

/** Registers the tests that every reader and writer of JSON with exact 64-bit integers has to pass. */
export function int64JsonContract(
  name: string,
  parse: (text: string) => unknown,
  stringify: (value: NonNullable<unknown> | null) => string,
): void {
  describe(`${name} keep the contract of JSON with 64-bit integers`, () => {
    test('reads an integer beyond double precision exactly, as a bigint', () => {
      assert.deepEqual(parse('{"a":9223372036854775807,"b":[-9223372036854775808, 5]}'), {
        a: 9223372036854775807n,
        b: [-9223372036854775808n, 5],
      });
    });

    test('reads every other number as a number, also beside a long integer', () => {
      const numbers = '9007199254740991,-9007199254740991,0,1.5,1e300,1234567890123456.5,1e20';
      const expected = [9007199254740991, -9007199254740991, 0, 1.5, 1e300, 1234567890123456.5, 1e20];
      assert.deepEqual(parse(`[${numbers}]`), expected);
      assert.deepEqual(parse(`[${numbers},9223372036854775807]`), [...expected, 9223372036854775807n]);
    });

    test('keeps digits in strings as text, also beside long integers', () => {
      const value = {
        digest: 'sha256:12345678901234567890',
        id: '9223372036854775807',
        list: '[9223372036854775807]',
        text: 'took 9223372036854775807 ns, "9223372036854775807" \\',
        '\\"': ' 9223372036854775807 ',
      };
      assert.deepEqual(parse(JSON.stringify(value)), value);
      const text = '{"id":"9223372036854775807","seconds":9223372036854775807}';
      assert.deepEqual(parse(text), { id: '9223372036854775807', seconds: 9223372036854775807n });
    });

    test('writes a bigint of any size as a bare integer', () => {
      assert.equal(stringify({ a: 9223372036854775807n, b: [5n, 5] }), '{"a":9223372036854775807,"b":[5,5]}');
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
      fc.assert(fc.property(tree, (value) => assert.deepEqual(parse(stringify({ value })), { value })));
    });

    test('rejects invalid JSON, with or without long integers', () => {
      for (const text of ['', '{', '{"a":9223372036854775807', '09223372036854775807']) {
        assert.throws(() => parse(text), SyntaxError);
      }
    });
  });
}
