import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readDirectory } from '#test/conformance/read-directory.ts';

test('every published case holds, as run by `npm run conformance`', async (t) => {
  const published = await readDirectory(join(import.meta.dirname, '../conformance/cases'));
  for (const file of published) {
    await t.test(file.name, async (inFile) => {
      if ('fault' in file) assert.fail(file.fault);
      for (const oneCase of file.cases) {
        await inFile.test(oneCase.id, async () => assert.equal(await oneCase.run(), undefined));
      }
    });
  }
});
