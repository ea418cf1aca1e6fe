import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../..');
const PAGE = 'docs/reference/renamed.md';
const PRODUCT = ['README.md', '{functions,shared,simulator,cdk,deploy,docs,bin}/**/*.{ts,js,md,json,yaml}'];

/** The rows of the page: the former and the current name in backticks, possibly followed by more text. */
const rows = readFileSync(join(ROOT, PAGE), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (before|---) /.test(line));

/** The former names that no longer work, without names that are also words of prose and can't be found. */
const gone = rows
  .filter((row) => !row.includes('still works'))
  .map((row) => /^\| `([^`]+)` \| `/.exec(row)?.[1] ?? row)
  .filter((name) => /[-._]/.test(name));

test('each row of the page of renamed names has a former and a current name', () => {
  for (const row of rows) assert.match(row, /^\| `[^`]+` \| `[^`]+`/);
});

test('no product file or page uses a removed name', () => {
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
