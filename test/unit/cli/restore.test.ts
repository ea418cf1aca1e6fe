import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './command-line.ts';

test('restores a table after confirmation and prints the number of items', async (t) => {
  const { run, state, fleet, asked } = commandLine(t);
  const from: string[] = [];
  Object.assign(fleet, {
    restoreFrom: async (table: string) => {
      from.push(table);
      return 12;
    },
  });
  await assert.rejects(run('restore', '--from', 'old'), { name: 'CliError', message: /rerun with --yes\.$/ });
  state.answer = false;
  await assert.rejects(run('restore', '--from', 'old'), {
    name: 'CliError',
    message: 'Canceled. Nothing was changed.',
  });
  assert.deepEqual([asked, from], [['Overwrite items in a test with items from old?'], []]);
  state.answer = true;
  assert.equal(await run('restore', '--from', 'old'), 'Copied 12 items from old into a test.\n');
  await run('restore', '--from', 'older', '--yes');
  assert.deepEqual(from, ['old', 'older']);
});

test('counts the items of a dry run without a question, and copies none', async (t) => {
  const { run, fleet, asked } = commandLine(t);
  const copied: unknown[] = [];
  Object.assign(fleet, {
    restoreFrom: async (_: string, { dryRun }: { readonly dryRun?: boolean } = {}) => {
      if (!dryRun) copied.push(_);
      return 12;
    },
  });
  const change = '12 items are copied from old into a test. Items with the same key are overwritten.';
  assert.equal(
    await run('restore', '--from', 'old', '--dry-run'),
    `Dry run: nothing was changed. Without --dry-run:\n${change}\n`,
  );
  assert.deepEqual(JSON.parse(await run('restore', '--from', 'old', '--dry-run', '-o', 'json')), [
    { change, effects: [] },
  ]);
  assert.deepEqual([asked, copied], [[], []]);
});

test('rejects restore with a state directory', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('restore', '--from', 'old', '--yes'), {
    name: 'CliError',
    message: /^No table to restore into \(a test\)\. .* --table NAME/,
  });
});
