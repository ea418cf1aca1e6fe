import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../..');
const PAGE = 'docs/reference/renamed.md';
const PRODUCT = ['README.md', '{functions,shared,simulator,cdk,deploy,docs,bin}/**/*.{ts,js,md,json,yaml}'];

/** The rows of the page: each names before and now, in backticks, and may say more after that. */
const rows = readFileSync(join(ROOT, PAGE), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (before|---) /.test(line));

/** What still works says so. Words that are common in prose can't be found by name. */
const gone = rows
  .filter((row) => !row.includes('still works'))
  .map((row) => /^\| `([^`]+)` \| `/.exec(row)?.[1] ?? row)
  .filter((name) => /[-._]/.test(name));

test('every row of the page of renamed names has a name before and one now', () => {
  for (const row of rows) assert.match(row, /^\| `[^`]+` \| `[^`]+`/);
});

test('no name that the page says is gone is used in the product or its docs', () => {
  const files = globSync(PRODUCT, { cwd: ROOT }).filter(
    (file) => file !== PAGE && !file.includes('node_modules/'),
  );
  assert.ok(files.length > 500);
  const names = gone.map((name) => ({
    name,
    pattern: new RegExp(`(?<![\\w.-])${RegExp.escape(name)}(?![\\w-])`),
  }));
  const used = files.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    return names.filter(({ pattern }) => pattern.test(text)).map(({ name }) => `${file}: ${name}`);
  });
  assert.deepEqual(used, []);
});
