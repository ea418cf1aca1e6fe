import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const { version } = JSON.parse(
  readFileSync(fileURLToPath(import.meta.resolve('../../package.json')), 'utf8'),
);

for (const main of ['service', 'relay', 'cli']) {
  test(`functions/${main} prints its version`, () => {
    const path = fileURLToPath(import.meta.resolve(`#functions/${main}/main.ts`));
    const { status, stdout, stderr } = spawnSync(process.execPath, [path, '--version'], {
      env: {},
      encoding: 'utf8',
    });
    assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, '']);
  });
}
