import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

test('the guide lists the gaps of the MiniStack version that CI installs', () => {
  const [, version] = /ministack==([\d.]+)/.exec(read('.ci/ministack')) ?? [];
  assert.ok(version);
  assert.ok(
    read('docs/internals/evidence.md').includes(`What MiniStack ${version}, which CI installs, does not do:`),
    `docs/internals/evidence.md: ask MiniStack ${version} for each row of the table, and name it`,
  );
});
