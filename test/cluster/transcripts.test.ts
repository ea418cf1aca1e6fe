import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { operatorAccount } from '#test/cluster/rig/operator-account.ts';
import { LATENESS, Transcript } from '#test/transcripts/transcript.ts';
import { npmStart } from '#test/world/npm-start.ts';
import { fileStage } from './rig/file-stage.ts';
import { CONTEXT } from './rig/stage.ts';
import { tolerates } from './rig/tolerations.ts';

const stage = fileStage('bare');

/** On some control planes the status shows whether the built-in controller runs. */
const BUILT_IN: readonly (readonly [RegExp, string])[] = [
  [/^ +\w+ +built-in .*\n( {21}.*\n)?/gm, '  (whether the built-in controller runs)\n'],
  [/(?<=enforce +)(off|unknown)/g, '<built-in>'],
  [/(?<=^ *built-in controller: ).*/gm, '<built-in>'],
  [/(?<=^built-in controller +).*/gm, '<built-in>'],
  [/ Should the built-in controller be on[^.]*\./g, ''],
  [/(?<=hold it), which the built-in controller[^:]*/g, ''],
];

test('matches the recorded session at a real API server', async (t) => {
  const { cluster, kubeconfig } = stage();
  const { state } = await npmStart(t, '--enforce', '--context', CONTEXT, '--kubeconfig', kubeconfig);
  const { token } = await operatorAccount(cluster, 'admin');
  const own = await stage().writeKubeconfig('own.kubeconfig', cluster.connection, token);
  const at = new Transcript({
    always: ['--state-dir', state],
    names: [
      [cluster.run, 'run'],
      ...BUILT_IN,
      ...LATENESS,
      // The text depends on whether the change was seen by now.
      [/\bafter (\d+(ms|[dhms]))+(?= {2}|$)/gm, ''],
    ],
  });
  const live = ['--context', CONTEXT, '--kubeconfig', own];
  await at.run('doctor');
  const node = await cluster.addNode('told');
  await cluster.addPod(node, 'told', { tolerations: [tolerates('x', 3_600)] });
  await cluster.taint(node, { key: 'x' });
  at.note('A pod tolerates the taint of its node for an hour.');
  await at.until(({ out }) => /told/.test(out), ['pending', CONTEXT]);
  // The Events of the countdown can arrive later.
  await at.until(({ out }) => /^Backlog: +none$/m.test(out), ['status']);
  const pod = `${cluster.namespace}/told`;
  await at.run('explain', 'pod', pod, ...live);
  await at.run('explain', 'node', node, ...live);
  at.note('The same with the rights of the service, which reads no budgets.');
  await at.run('explain', 'pod', pod);
  await at.run('what-if', '--taint', 'maintenance=now:NoExecute', '--nodes', node, ...live);

  const about = ['--cluster', CONTEXT, '--reason'];
  const holds = [
    await at.run('hold', 'node', node, ...about, 'it is being mended'),
    await at.run('hold', 'pod', pod, ...about, 'it is being debugged', '--for', '4h'),
    await at.run('hold', 'workload', `${cluster.namespace}/Deployment/told`, ...about, 'a sale', '--yes'),
  ];
  await at.run('holds');
  for (const { out } of holds) {
    const [hold = assert.fail(`no hold is named by: ${out}`)] = /\bh[0-9a-f]{8}\b/.exec(out) ?? [];
    await at.run('release', hold, '--reason', 'it is over');
  }
  await at.run('stop', CONTEXT, '--reason', 'an incident');
  await at.run('explain', 'pod', pod, ...live);
  await at.run('resume', CONTEXT, '--reason', 'it is over');
  await at.run('pause', CONTEXT, '--reason', 'wait a moment');
  await at.run('resume', CONTEXT, '--reason', 'go on');

  const policy = stage().write('policy.yaml', 'mode: enforce\nevictionRate: 20\n');
  await at.run('policy', 'validate', '--file', policy);
  await at.run('policy', 'diff', CONTEXT, '--file', policy);
  await at.run('policy', 'apply', CONTEXT, '--file', policy, '--yes');
  await at.run('policy', 'get', CONTEXT);
  await at.run('retry', CONTEXT);
  await at.run('audit');

  await cluster.untaint(node, 'x');
  at.note('The taint is taken away.');
  await at.until(({ out }) => !/told/.test(out), ['pending']);
  await at.run('history', '--pod', 'told');

  await cluster.taint(node, { key: 'y' });
  at.note('Another comes, which the pod does not tolerate.');
  await at.until(({ out }) => / was evicted /.test(out), ['explain', 'pod', pod, ...live]);
  await at.run('history', '--pod', 'told');
  await at.run('explain', 'node', node, ...live);
  await at.run('dead-letters', 'list');
  await at.run('dead-letters', 'redrive', '--all');

  await at.run('takeover', 'apply', '--dry-run', ...live);
  await at.run('takeover', 'status', ...live);
  await at.run('takeover', 'release', ...live);
  at.compareShape(t, join(import.meta.dirname, 'transcripts.txt'));
});
