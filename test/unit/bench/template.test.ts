import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { GzipStream, hole, jsonHole, Template } from '#test/bench/relay/server/template.ts';

const template = new Template({ name: hole('name'), again: `x-${hole('name')}`, taints: jsonHole('taints') });
const values = fc.record({
  name: fc.stringMatching(/^[a-z0-9-]{0,80}$/),
  taints: fc
    .array(fc.record({ key: fc.stringMatching(/^[a-z]{1,9}$/) }))
    .map((taints) => JSON.stringify(taints)),
});

test('fills the holes of the JSON template of a synthetic object', () => {
  fc.assert(
    fc.property(values, ({ name, taints }) => {
      const expected = { name, again: `x-${name}`, taints: JSON.parse(taints) };
      assert.deepEqual(JSON.parse(template.text({ name, taints })), expected);
    }),
  );
});

test('compresses objects piece by piece into text that decompresses as a whole', () => {
  fc.assert(
    fc.property(fc.array(values), (objects) => {
      const gzip = new GzipStream();
      const parts = [gzip.head, gzip.plain('[')];
      for (const object of objects) {
        gzip.count(template.text(object));
        parts.push(...template.blocks(object));
      }
      parts.push(gzip.tail());
      const text = `[${objects.map((object) => template.text(object)).join('')}`;
      assert.equal(gunzipSync(Buffer.concat(parts)).toString(), text);
    }),
  );
});
