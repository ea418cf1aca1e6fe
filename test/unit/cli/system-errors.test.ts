import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { run } from '#functions/cli/run.ts';
import { plainOutput } from './plain-output.ts';

/** Returns the error output and exit code of a command whose `work` throws. */
async function complaintOf(work: () => never) {
  let complaint = '';
  const code = await run(['status'], {
    ...plainOutput().deps,
    fleet: work,
    live: async () => work(),
    clock: { now: () => 0 },
    connect: work,
    complain: (text) => {
      complaint += text;
    },
  });
  return { code, complaint };
}

test('prints an unexpected system error as one sentence without a stack', async () => {
  const read = () => readFileSync('/nowhere/clusters.json') as never;
  assert.deepEqual(await complaintOf(read), {
    code: 1,
    complaint:
      'taintward: Cannot open /nowhere/clusters.json (ENOENT): it does not exist; create it, or name another path.\n',
  });
});

test('prints the stack of a programming error for bug reports', async () => {
  const { code, complaint } = await complaintOf(() => {
    throw new TypeError('x is not a function');
  });
  assert.equal(code, 1);
  assert.match(complaint, /^taintward: TypeError: x is not a function\n {4}at /);
});
