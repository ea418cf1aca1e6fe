import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, parseInt64 } from '#shared/taints/int64.ts';
import { int64 } from './arbitraries.ts';

test('parses the decimal text of every int64', () => {
  fc.assert(fc.property(int64, (number) => parseInt64(String(number)) === number));
});

test('parses a text only when the number has exactly this text', () => {
  const nearlyNumber = fc.stringMatching(/^[-+ 0]?[0-9]{0,21}[.e ]?$/);
  fc.assert(
    fc.property(fc.oneof(fc.string(), nearlyNumber), (text) => {
      const number = parseInt64(text);
      return number === undefined || String(number) === text;
    }),
  );
});

test('parses both ends of the range, and rejects the numbers beyond', () => {
  assert.equal(parseInt64('9223372036854775807'), INT64_MAX);
  assert.equal(parseInt64('-9223372036854775808'), INT64_MIN);
  assert.equal(parseInt64('9223372036854775808'), undefined);
  assert.equal(parseInt64('-9223372036854775809'), undefined);
});

/** The cases of upstream's `TestIsDecimalInteger`. */
const NOT_CANONICAL = [
  ...['-0', '00', '000', '01', '0123', '0700', '-01', '-00', '+123', '+5', '+0'],
  ...['', '-', '+', ' ', '   ', ' 123', '123 ', '12 3', '12.3', '0.0', '-12.5', '123.', '.123'],
  ...['abc', '12a3', 'a123', '0x1', '0b1', '1e5', '1_000', '1,000', '--5', '５', '123\n', 'NaN', 'Infinity'],
];

for (const text of NOT_CANONICAL) {
  test(`rejects ${JSON.stringify(text)}, which is not a canonical integer`, () => {
    assert.equal(parseInt64(text), undefined);
  });
}
