import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseInt64Json, stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { int64JsonContract } from '#test/contracts/int64-json-contract.ts';

int64JsonContract('parseInt64Json and stringifyInt64Json', parseInt64Json, stringifyInt64Json);

for (const text of ['%', ' %\n', '[%]', '[1,%,1]', '[ %\t]', '{"a":%}', '{"a":\n%\n,"b":1}']) {
  test(`finds a long integer in ${JSON.stringify(text)}`, () => {
    const read = stringifyInt64Json({ read: parseInt64Json(text.replace('%', '-9007199254740993')) });
    assert.equal(read, `{"read":${text.replace('%', '-9007199254740993').replaceAll(/\s/g, '')}}`);
  });
}
