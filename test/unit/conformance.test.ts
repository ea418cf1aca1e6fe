import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readDirectory } from '#test/conformance/read-directory.ts';

/** Every published case, as run by `npm run conformance`. */
const published = await readDirectory(join(import.meta.dirname, '../conformance/cases'));

for (const file of published) {
  describe(file.name, () => {
    if ('fault' in file) {
      test('is a valid case file', () => assert.fail(file.fault));
      return;
    }
    for (const each of file.cases) {
      test(each.id, async () => {
        assert.equal(await each.run(), undefined);
      });
    }
  });
}
