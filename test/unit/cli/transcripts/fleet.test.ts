import { join } from 'node:path';
import { test } from 'node:test';
import { npmStart } from '#test/transcripts/npm-start.ts';
import { Transcript } from '#test/transcripts/transcript.ts';

const golden = (name: string) => join(import.meta.dirname, `${name}.txt`);

test('what waits on the simulated cluster is shown, held, stopped and resumed', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state', state] });
  await at.say('doctor');
  await at.say('pending');
  await at.say(
    'hold',
    'workload',
    'default/StatefulSet/db',
    '--cluster',
    'simulated',
    '--why',
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
  await at.say('pause', 'simulated', '--why', 'wait a moment', '--for', '1h');
  await at.say('status', '-o', 'yaml');
  await at.say('resume', 'simulated', '--why', 'go on');
  await at.say('stop', '--all', '--why', 'an incident', '--for', '1h');
  await at.say('status');
  await at.say('resume', '--all', '--why', 'over');
  await at.say('audit');
  await at.say('dead-letters', 'list');
  await at.say('dead-letters', 'redrive', '--queue', 'evictions-due');
  await at.say('retry', 'simulated');
  await at.say('policy', 'get', 'simulated');
  at.compare(t, golden('waiting'));
});

test('what went from the simulated cluster is told', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state', state] });
  type('taint node-1 gone=yes:NoExecute');
  at.note('node-1 is tainted, and none of its pods but those of daemons tolerates that.');
  await at.until(({ out }) => /evicted.* after /.test(out), ['history', '--pod', 'db-0']);
  await at.say('history', 'simulated', '--pod', 'db-0', '-o', 'yaml');
  await at.say('history', '--pod', 'db-0', '--compare');
  at.compare(t, golden('history'));
});

test('a cluster is looked at by a bare context', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({
    always: ['--kubeconfig', join(state, 'cluster', 'simulated-cluster.kubeconfig')],
  });
  await at.say('doctor', '--context', 'simulated');
  await at.say('doctor', '--context', 'nowhere');
  at.compare(t, golden('bare-context'));
});

test('what cannot be done is refused in a sentence', async (t) => {
  const { state } = await npmStart(t);
  const at = new Transcript({ always: ['--state', state] });
  await at.say('status', 'nowhere');
  await at.say('stop', 'simulated');
  await at.say('pause', 'simulated', '--why', '');
  await at.say('resume', 'simulated', '--why', 'over');
  await at.say('release', 'h00000000', '--why', 'done');
  await at.say('clusters', 'list');
  await at.say('pending', '--table', 'fleet');
  await at.say('dead-letters', 'redrive');
  await at.say('dead-letters', 'show', '7');
  at.compare(t, golden('refusals'));
});
