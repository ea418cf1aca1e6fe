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
  at.until(({ out }) => ALL_READY.every((pattern) => pattern.test(out)), ['what-if', ...EVERYWHERE]);

const golden = (name: string) => join(import.meta.dirname, `${name}.txt`);

test('pending evictions of the simulated cluster are shown, held, stopped, and resumed', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  // A pod that is bound to the node after the taint has a later deadline.
  await untilAllReady(at);
  await at.run('doctor');
  await at.run('pending');
  await at.run(
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
  await at.run('pending', '-o', 'wide');
  await at.run('pending', '--by', 'workload');
  await at.run('pending', '--by', 'zone', '-o', 'json');
  await at.run('pending', '--held', '-o', 'json');
  await at.run('pending', '--stuck');
  await at.run('holds');
  await at.run('pause', 'simulated', '--reason', 'wait a moment', '--for', '1h');
  await at.run('status', '-o', 'yaml');
  await at.run('resume', 'simulated', '--reason', 'go on');
  await at.run('stop', '--all', '--reason', 'an incident', '--for', '1h');
  // A decision can still be in progress.
  await at.until(({ out }) => /^Backlog: +none$/m.test(out), ['status']);
  await at.run('resume', '--all', '--reason', 'over');
  await at.run('audit');
  await at.run('dead-letters', 'list');
  await at.run('dead-letters', 'redrive', '--queue', 'evictions-due');
  await at.run('retry', 'simulated');
  await at.run('policy', 'get', 'simulated');
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
    await at.run('hold', 'pod', 'default/db-0', ...there, '--for', '4h'),
    await at.run('hold', 'node', 'node-1', ...there),
    await at.run('hold', 'namespace', 'default', ...there),
    await at.run('hold', 'labels', 'app in (db,web)', ...there, '-n', 'default'),
    await at.run('hold', 'zone', 'nowhere', ...there, '--yes'),
  ];
  await at.run('holds');
  for (const { out } of holds) {
    const [hold = assert.fail(`no hold is named by: ${out}`)] = /\bh[0-9a-f]{8}\b/.exec(out) ?? [];
    await at.run('release', hold, '--reason', 'it is over');
  }
  await at.run('stop', 'simulated', '--reason', 'an incident');
  await at.run('resume', 'simulated', '--reason', 'it is over');
  const policy = join(state, 'policy.yaml');
  writeFileSync(policy, 'mode: enforce\nevictionRate: 20\n');
  await at.run('policy', 'validate', '--file', policy);
  await at.run('policy', 'diff', 'simulated', '--file', policy);
  await at.run('policy', 'apply', 'simulated', '--file', policy, '--yes');
  const kubeconfig = join(state, 'cluster', 'simulated-cluster.kubeconfig');
  const live = ['--context', 'simulated', '--kubeconfig', kubeconfig];
  for (const what of ['status', 'apply', 'release']) await at.run('takeover', what, ...live);
  at.compare(t, golden('ruled'));
});

test('past evictions of the simulated cluster are shown', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state], names: LATENESS });
  type('taint node-1 gone=yes:NoExecute');
  at.note('node-1 is tainted, and none of its pods but those of daemons tolerates that.');
  await at.until(({ out }) => /evicted.* after /.test(out), ['history', '--pod', 'db-0']);
  await at.run('history', 'simulated', '--pod', 'db-0', '-o', 'yaml');
  await at.run('history', '--pod', 'db-0', '--compare');
  at.compare(t, golden('history'));
});

test('a cluster is inspected with a bare context', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({
    always: ['--kubeconfig', join(state, 'cluster', 'simulated-cluster.kubeconfig')],
  });
  await at.run('doctor', '--context', 'simulated');
  await at.run('doctor', '--context', 'nowhere');
  at.compare(t, golden('bare-context'));
});

test('impossible operations are rejected in one sentence', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  await at.run('status', 'nowhere');
  await at.run('pause', 'simulated');
  await at.run('pause', 'simulated', '--reason', '');
  await at.run('resume', 'simulated', '--reason', 'over');
  await at.run('release', 'h00000000', '--reason', 'done');
  await at.run('clusters', 'list');
  await at.run('clusters', 'show', 'simulated');
  await at.run('clusters', 'add', 'prod', '--eks', 'prod', '--region', 'eu-west-1');
  await at.run('clusters', 'remove', 'simulated');
  await at.run('pending', '--table', 'fleet');
  await at.run('dead-letters', 'redrive');
  at.compare(t, golden('refusals'));
});
