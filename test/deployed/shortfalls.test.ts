import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LACKS } from '#test/aws/localstack.ts';
import { ROOT } from './rig/command.ts';
import { deployed } from './rig/deployed-stage.ts';
import { shortfallTable } from './rig/shortfalls.ts';

const PAGE = join(ROOT, 'docs/operations.md');
const BEGIN =
  '<!-- Asked of the stand-in by test/deployed/shortfalls.test.ts, and written by it with --test-update-snapshots. -->\n';
const END = '\n<!-- end -->';

test('the guide names what the stand-in for an account does not do, and nothing else', async (t) => {
  if (!deployed().account.isOurs) {
    t.skip(LACKS.table);
    return;
  }
  await deployed().withRelays(0);
  const page = readFileSync(PAGE, 'utf8');
  const from = page.indexOf(BEGIN) + BEGIN.length;
  const to = page.indexOf(END, from);
  assert.ok(from >= BEGIN.length && to > from, 'docs/operations.md has no place for the table');
  const table = await shortfallTable(deployed());
  if (process.execArgv.includes('--test-update-snapshots')) {
    writeFileSync(PAGE, page.slice(0, from) + table + page.slice(to));
  } else {
    assert.equal(page.slice(from, to), table);
  }
});
