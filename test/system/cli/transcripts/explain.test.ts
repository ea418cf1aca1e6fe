import { join } from 'node:path';
import { test } from 'node:test';
import { Transcript, taintward } from '#test/transcripts/transcript.ts';
import { npmStart } from '#test/world/npm-start.ts';

const golden = (name: string) => join(import.meta.dirname, `${name}.txt`);
const DB = ['explain', 'pod', 'default/db-0'];

test('explain shows a pod of the simulated cluster before its node is tainted, during its countdown, and while it is held', async (t) => {
  const { state, type } = await npmStart(t);
  const at = new Transcript({ always: ['--state-dir', state] });
  await at.until(({ out }) => out.includes('stays'), DB);
  await at.until(({ out }) => out.includes('4 pods stay'), ['explain', 'node', 'node-1']);
  type('taint node-1 node.kubernetes.io/unreachable:NoExecute');
  at.note(
    'node-1 is tainted as one that cannot be reached, which all of its pods tolerate for five minutes.',
  );
  await at.until(({ out }) => out.includes('scheduled'), DB);
  await at.run(
    ...['hold', 'workload', 'default/StatefulSet/db', '--cluster', 'simulated', '--reason', 'a backup runs'],
  );
  await at.run(...DB, '-o', 'yaml');
  const db = ['explain', 'statefulset/db', '-n', 'default'];
  await at.until(({ out }) => / 2 of 2 ready: /.test(out), db);
  await at.run('stop', 'simulated', '--reason', 'an incident', '--for', '1h');
  await at.run(...DB);
  await at.run('explain', 'pod', 'default/nix');
  await at.run('explain', 'pod', 'nix');
  await at.run('explain', 'node', 'nix');
  await at.run('explain', 'workload', 'default/Deployment/nix');
  at.compare(t, golden('explain'));
});

test('explain works with a bare context, without a service', async (t) => {
  const { state, type } = await npmStart(t);
  const kubeconfig = join(state, 'cluster', 'simulated-cluster.kubeconfig');
  const at = new Transcript({ always: ['--kubeconfig', kubeconfig, '--context', 'simulated'] });
  await taintward(
    'hold',
    'node',
    'node-1',
    '--cluster',
    'simulated',
    '--reason',
    'a backup runs',
    '--state-dir',
    state,
  );
  type('taint node-1 node.kubernetes.io/unreachable:NoExecute');
  at.note(
    'node-1 is tainted as one that cannot be reached, which all of its pods tolerate for five minutes.',
  );
  await at.until(({ out }) => out.includes('unreachable'), DB);
  await at.run('explain', 'pod', 'default/nix');
  at.compare(t, golden('explain-bare-context'));
});
