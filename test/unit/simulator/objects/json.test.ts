import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson, stringifyJson, withoutNulls } from '#simulator/objects/json.ts';
import { int64JsonContract } from '#test/contracts/int64-json-contract.ts';

int64JsonContract('parseJson and stringifyJson', parseJson, stringifyJson);

test('omits null fields, but not null items of a list', () => {
  assert.deepEqual(withoutNulls({ a: null, b: { c: null, d: 1 }, e: [null, { f: null }] }), {
    b: { d: 1 },
    e: [null, {}],
  });
});
