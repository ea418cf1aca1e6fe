import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fieldsOf, itemsOf, parseInt64Json } from '#shared/kubernetes/http/api-json.ts';
import type { Trim } from '#shared/kubernetes/http/bulk.ts';
import { readListJson } from '#shared/kubernetes/http/list-json.ts';

const itself = (item: unknown) => item;
const untrimmed: Trim = (json) => json.toString();
const read = (json: string) => readListJson(Buffer.from(json), itself, untrimmed);

/** Returns the metadata and items of the whole text, parsed in one step. */
function whole(json: string) {
  const { metadata, items } = fieldsOf(parseInt64Json(json));
  return { metadata, items: itemsOf(items) };
}

const metadata = { resourceVersion: '9' };
const item = (name: string, more: object = {}) => ({ metadata: { name }, ...more });

describe('a list that is read item by item equals the whole list', () => {
  const words = ['a', '},{"metadata":{"name":"', '"items":[', ']}', 'ä'];
  // V8 13.6 confuses a key of one escaped character with another such key of an object of the same shape.
  const key = fc.constantFrom(...words);
  const text = fc.constantFrom(...words, '\\', '"');
  const value: fc.Arbitrary<unknown> = fc.oneof(text, fc.constant(1), fc.constant(null), fc.array(text));
  const anItem = fc
    .tuple(text, fc.dictionary(key, value), fc.dictionary(fc.constantFrom('items', 'x'), value))
    .map(([name, more, own]) => item(name, { spec: more, ...own }));

  test('for items with any content', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anItem), fc.dictionary(key, value), async (items, more) => {
        const json = JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, ...more, items });
        assert.deepEqual(await read(json), whole(json));
      }),
    );
  });

  for (const [what, json] of Object.entries({
    'with other lists in it': JSON.stringify({ x: { items: [item('a')] }, items: [], metadata }),
    'that is no list': JSON.stringify({ x: { items: [item('a'), item('b')] }, metadata }),
    'with two lists': `{"items":[{"a":1}],"metadata":${JSON.stringify(metadata)},"items":[{"b":2}]}`,
    'whose items are null': JSON.stringify({ metadata, items: null }),
    'in many lines': JSON.stringify({ metadata, items: [item('a'), item('b')] }, null, 2),
    'with a newline at its end': `${JSON.stringify({ metadata, items: [item('a'), item('b')] })}\n`,
    'with long integers': '{"items":[{"metadata":{"name":"a","x":9007199254740993}}]}',
  })) {
    test(what, async () => assert.deepEqual(await read(json), whole(json)));
  }
});

test('rejects half a list', async () => {
  const json = JSON.stringify({ metadata, items: [item('a'), item('b')] });
  for (let length = 1; length < json.length; length += 1) {
    await assert.rejects(read(json.slice(0, length)), SyntaxError);
  }
});
