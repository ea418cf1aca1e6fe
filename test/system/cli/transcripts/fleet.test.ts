import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LATENESS, Transcript } from '#test/transcripts/transcript.ts';
import { npmStart } from '#test/world/npm-start.ts';

/** The output of what-if once all pods are ready. */
const ALL_READY = [/ of 16 pods, /, /\ball 6\b/, /\ball 4\b/, /\ball 2\b/, /checkout +1 +4/];

const EVERYWHERE = ['--taint', 'maintenance=now:NoExecute', '--nodes', 'node-1,node-2,node-3,node-4'];

const untilAllReady = (at: Transcript): Promise<void> =>
  at.until(({ out }) => ALL_READY.every((said) => said.test(out)), ['what-if', ...EVERYWHERE]);

const golden = (name: string) => join(import.meta.dirname, `${name}.txt`);

test('pending evictions of the simulated cluster are shown, held, stopped, and resumed', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  // A pod that is bound to the node after the taint has a later deadline.
  await untilAllReady(at);
  await at.say('doctor');
  await at.say('pending');
  await at.say(
    'hold',
    'workload',
    'default/StatefulSet/db',
    '--cluster',
    'simulated',
    '--reason',
    'a backup runs',
  );
  type('taint node-1 node.kubernetes.io/unreachable:NoExecute');
  at.note(
    'node-1 is tainted as one that cannot be reached, which all of its pods tolerate for five minutes.',
  );
  await at.until(({ out }) => /db-0/.test(out), ['pending', 'simulated']);
  await at.say('pending', '-o', 'wide');
  await at.say('pending', '--held', '-o', 'json');
  await at.say('pending', '--stuck');
  await at.say('holds');
  await at.say('pause', 'simulated', '--reason', 'wait a moment', '--for', '1h');
  await at.say('status', '-o', 'yaml');
  await at.say('resume', 'simulated', '--reason', 'go on');
  await at.say('stop', '--all', '--reason', 'an incident', '--for', '1h');
  // A decision can still be in progress.
  await at.until(({ out }) => /^Backlog: +none$/m.test(out), ['status']);
  await at.say('resume', '--all', '--reason', 'over');
  await at.say('audit');
  await at.say('dead-letters', 'list');
  await at.say('dead-letters', 'redrive', '--queue', 'evictions-due');
  await at.say('retry', 'simulated');
  await at.say('policy', 'get', 'simulated');
  at.compare(t, golden('waiting'));
});

test('forecasts for the simulated cluster are shown, with the checks that are impossible there', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  await untilAllReady(at);
  at.compare(t, golden('asked'));
});

test('rules of the simulated cluster are shown, and canceled', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  const there = ['--cluster', 'simulated', '--reason', 'it is being mended'];
  const holds = [
    await at.say('hold', 'pod', 'default/db-0', ...there, '--for', '4h'),
    await at.say('hold', 'node', 'node-1', ...there),
  ];
  await at.say('holds');
  for (const { out } of holds) {
    const [hold = assert.fail(`no hold is named by: ${out}`)] = /\bh[0-9a-f]{8}\b/.exec(out) ?? [];
    await at.say('release', hold, '--reason', 'it is over');
  }
  await at.say('stop', 'simulated', '--reason', 'an incident');
  await at.say('resume', 'simulated', '--reason', 'it is over');
  const policy = join(state, 'policy.yaml');
  writeFileSync(policy, 'mode: enforce\nevictionRate: 20\n');
  await at.say('policy', 'validate', '--file', policy);
  await at.say('policy', 'diff', 'simulated', '--file', policy);
  await at.say('policy', 'apply', 'simulated', '--file', policy, '--yes');
  const kubeconfig = join(state, 'cluster', 'simulated-cluster.kubeconfig');
  const live = ['--context', 'simulated', '--kubeconfig', kubeconfig];
  for (const what of ['status', 'apply', 'release']) await at.say('takeover', what, ...live);
  at.compare(t, golden('ruled'));
});

test('past evictions of the simulated cluster are shown', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state], names: LATENESS });
  type('taint node-1 gone=yes:NoExecute');
  at.note('node-1 is tainted, and none of its pods but those of daemons tolerates that.');
  await at.until(({ out }) => /evicted.* after /.test(out), ['history', '--pod', 'db-0']);
  await at.say('history', 'simulated', '--pod', 'db-0', '-o', 'yaml');
  await at.say('history', '--pod', 'db-0', '--compare');
  at.compare(t, golden('history'));
});

test('a cluster is inspected with a bare context', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({
    always: ['--kubeconfig', join(state, 'cluster', 'simulated-cluster.kubeconfig')],
  });
  await at.say('doctor', '--context', 'simulated');
  await at.say('doctor', '--context', 'nowhere');
  at.compare(t, golden('bare-context'));
});

test('impossible operations are rejected in one sentence', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  await at.say('status', 'nowhere');
  await at.say('pause', 'simulated');
  await at.say('pause', 'simulated', '--reason', '');
  await at.say('resume', 'simulated', '--reason', 'over');
  await at.say('release', 'h00000000', '--reason', 'done');
  await at.say('clusters', 'list');
  await at.say('clusters', 'show', 'simulated');
  await at.say('clusters', 'add', 'prod', '--eks', 'prod', '--region', 'eu-west-1');
  await at.say('clusters', 'remove', 'simulated');
  await at.say('pending', '--table', 'fleet');
  await at.say('dead-letters', 'redrive');
  at.compare(t, golden('refusals'));
});
