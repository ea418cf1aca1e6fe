import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '#test/cluster/rig/until.ts';
import { type Said, taintward } from '#test/transcripts/transcript.ts';
import { npmStart } from '#test/world/npm-start.ts';

/** Time within which the commands report it. */
const WITHIN_MS = 15_000;

/** Starts `npm start` with the simulated cluster. `ending` waits until a command ends with one of these codes. */
async function demo(t: Parameters<typeof npmStart>[0]) {
  const { state, signal } = await npmStart(t);
  const ending = (codes: readonly number[], ...words: readonly string[]): Promise<Said> =>
    until(
      `${words.join(' ')} ends with ${codes.join(' or ')}`,
      async () => {
        const said = await taintward(...words, '--state-dir', state);
        return codes.includes(said.code) && said;
      },
      WITHIN_MS,
    );
  const well = await ending([0], 'status');
  assert.match(well.out, /No action required\.\n$/);
  return { signal, ending };
}

test('status and doctor report a suspended npm start within 15 s, until it resumes', async (t) => {
  const { signal, ending } = await demo(t);
  signal('SIGSTOP');
  // At first only npm start does not answer. The commands also wait for the simulated cluster, which does not answer
  // either.
  const silent = await ending([69, 2], 'status');
  assert.match(silent.out, /The running npm start does not respond on .*service\.sock/);
  assert.doesNotMatch(silent.out, /No action required/);
  const { out } = await ending([2], 'status');
  assert.match(
    out,
    /! The running npm start does not respond: it is frozen, .* last lease renewal was \d\ds ago/,
  );
  assert.doesNotMatch(out, /No action required/);
  assert.match((await ending([2], 'doctor')).out, /BAD +process +The running npm start does not respond/);
  signal('SIGCONT');
  await ending([0], 'status');
});

test('status and doctor report a killed npm start within 15 s', async (t) => {
  const { signal, ending } = await demo(t);
  signal('SIGKILL');
  const { out } = await ending([2], 'status');
  assert.match(
    out,
    /! No npm start runs on this state directory: changes of nodes and pods are missed, and no pods are evicted\./,
  );
  assert.match((await ending([2], 'doctor')).out, /BAD +process +No npm start runs/);
  const pending = await ending([69], 'pending');
  assert.match(pending.err, /This list may be outdated\. No npm start runs/);
});
