import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { givesBack } from '#test/world/given-back.ts';

/** Fills the pipe of its standard output, and writes to standard error after twice the turns in which leaks may end. */
const PRINTING = `
  import { givesBack } from '#test/world/given-back.ts';
  let turns = 0;
  const count = () => turns++ < 2_000 ? setImmediate(count).unref() : process.stderr.write('late');
  await givesBack(async () => {
    process.stdout.write('x'.repeat(4_000_000));
    count();
  });
`;

test('does not count output that waits for a late reader', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PRINTING], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
    child.stdout.resume();
  });
  assert.deepEqual([await closed, complaint], [[0, null], 'late']);
});

test('counts a timer', async () => {
  let timer: NodeJS.Timeout | undefined;
  const left = givesBack(async () => {
    timer = setTimeout(() => undefined, 60_000);
  });
  await assert.rejects(left, /was given back[\s\S]*Timeout/);
  clearTimeout(timer);
});
