import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { RelayStatus } from '#shared/operations/look/status.ts';
import { VERSION } from '#shared/version.ts';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { operatorAccount } from '#test/cluster/rig/operator-account.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { LATENESS, type Printed, Transcript } from '#test/transcripts/transcript.ts';
import { ROOT } from './rig/command.ts';
import { deployed } from './rig/deployed-stage.ts';
import { accountEnvironment } from './rig/emulated-account.ts';

const ENFORCE = 'test/deployed/rig/enforce.yaml';

/**
 * Differences on LocalStack. It reports the table's immediate capacity, and it evaluates alarms but makes no metrics of
 * logs and event sources. The alarms on missing ones therefore fire.
 */
const ON_LOCALSTACK: readonly (readonly [RegExp, string])[] = [
  [/immediately 4000 \(2000 scheduled pods\)/g, 'immediately an unknown number'],
  [/^ {2}BAD +alarms .*\n.*\n/gm, ''],
  [
    /(?<=<count> of <count> alarms have no subscribers\.\n.*\n)(?! {2}ok +alarms)/g,
    '  ok   alarms   <count> of <count> alarms have no data yet, as in the first minutes after a deployment.\n',
  ],
  [/\[ends with 2\]\n(?=\n\$ taintward status beta\n)/g, ''],
];

/** Runs as a separate process, because its account is in the environment. */
function taintward(...args: readonly string[]): Promise<Printed> {
  const { account, state } = deployed();
  const env = { ...accountEnvironment(account.url), TAINTWARD_TABLE: state.tableName };
  return new Promise((resolve) =>
    execFile(
      process.execPath,
      [join(ROOT, 'functions/cli/main.ts'), ...args],
      { env, cwd: ROOT },
      (error, out, err) => resolve({ out, err, code: Number(error?.code ?? 0) }),
    ),
  );
}

test('matches the recorded session at a deployment', async (t) => {
  const { account, queues, alpha, beta, state } = deployed();
  const startedAt = Date.now();
  const dir = mkdtempSync(join(tmpdir(), 'told-'));
  t.after(() => rmSync(dir, { recursive: true }));
  await deployed().withRelays(1);
  // Leftovers of earlier tests, including messages of an invocation that a deployment ended, which return after
  // minutes.
  await queues.evictionsDue.purge();
  await queues.evictionsDueDead.purge();
  const { cluster } = beta;
  const names: readonly (readonly [string | RegExp, string])[] = [
    // The ARNs contain the names of runs.
    ...[alpha, beta].map(({ name, secretArn }) => [secretArn, `<secret of ${name}>`] as const),
    ...[alpha, beta].map((each) => [each.cluster.run, 'run'] as const),
    [/(?<=--since )\d+s/g, '<span>'],
    ...LATENESS,
    [/^\S+\/[0-9a-f-]{36} .*$/gm, '(a relay, its release, and its figures)'],
    // Both are requested together; the output names the first rejected one.
    [/(?<=^taintward: Cannot get .*)mutatingadmissionpolicybindings/gm, 'mutatingadmissionpolicies'],
    // Leftovers of other tests there.
    [/(?<=^beta +enforce ).*/gm, '(its figures)'],
    // The counts depend on the stand-in's machine and on the stack.
    [/(?<=Lambda runs |alarms +|alarms +\d+ of )\d+(?= )/g, '<count>'],
    [/\bafter (\d+(ms|[dhms]))+(?= {2}|$)/gm, ''],
    ...(account.isLocalStack ? ON_LOCALSTACK : []),
  ];
  const at = new Transcript({ run: taintward, names });
  await at.run('clusters', 'list');
  await at.run('clusters', 'show', 'beta');
  await at.run('clusters', 'add', 'beta', '--kubeconfig-secret', beta.secretArn, '--context', 'nowhere');
  await at.run('clusters', 'remove', 'nowhere');
  await at.run('doctor', 'beta');
  // A timer of an earlier test fires within two minutes.
  await at.until(({ out }) => /^Backlog: +none$/m.test(out), ['status', 'beta'], 150_000);
  await at.run('status', 'nowhere');

  const node = await cluster.addNode('told');
  const life = await cluster.addPod(node, 'told', { tolerations: [tolerates('x', 3_600)] });
  await cluster.taint(node, { key: 'x' });
  await state.scheduled('beta', life);
  at.note('A pod tolerates the taint of its node for an hour.');
  const pod = `${cluster.namespace}/told`;
  const there = ['--cluster', 'beta'];
  await at.run('explain', 'pod', pod, ...there);
  await at.run('explain', 'node', node, ...there);
  await at.run('what-if', 'beta', '--taint', 'maintenance=now:NoExecute', '--nodes', node);
  at.note('Who has rights of their own in the cluster asks by these.');
  const own = join(dir, 'kubeconfig');
  const { token } = await operatorAccount(cluster, 'viewer');
  writeFileSync(own, await kubeconfigText([{ context: 'beta', connection: cluster.connection, token }]));
  const live = ['--context', 'beta', '--kubeconfig', own];
  await at.run('explain', 'node', node, ...there, ...live);

  const why = ['--reason', 'it is being mended'];
  const holds = [
    await at.run('hold', 'node', node, ...there, ...why),
    await at.run('hold', 'pod', pod, ...there, ...why, '--for', '4h'),
    await at.run('hold', 'workload', `${cluster.namespace}/Deployment/told`, ...there, ...why, '--yes'),
  ];
  await at.run('holds', 'beta');
  await at.run('pending', 'beta');
  for (const { out } of holds) {
    const [hold = assert.fail(`no hold is named by: ${out}`)] = /\bh[0-9a-f]{8}\b/.exec(out) ?? [];
    await at.run('release', hold, '--reason', 'it is over');
  }
  await at.run('stop', 'beta', '--reason', 'an incident', '--for', '1h');
  await at.run('explain', 'pod', pod, ...there);
  await at.run('resume', 'beta', '--reason', 'it is over');
  await at.run('pause', 'beta', '--reason', 'wait a moment');
  await at.run('resume', 'beta', '--reason', 'go on');
  await at.run('audit', 'beta', '--since', `${Math.ceil((Date.now() - startedAt) / 1_000)}s`);
  await at.run('policy', 'get', 'beta');
  await at.run('policy', 'diff', 'beta', '--file', ENFORCE);
  await at.run('policy', 'apply', 'beta', '--file', ENFORCE, '--yes');
  await at.run('retry', 'beta');

  await cluster.taint(node, { key: 'y' });
  at.note('A second taint comes, which it does not tolerate.');
  await at.until(({ out }) => / was evicted /.test(out), ['explain', 'pod', pod, ...there]);
  await at.run('history', 'beta', '--pod', 'told');
  await at.run('history', 'nowhere');

  await queues.nodeDeltas.send('{"v":1,"kind":"node","cluster":"alpha"}', { group: 'told', id: 'told' });
  await until('the dead letter', () => queues.nodeDeltasDead.peek());
  at.note('Somebody sent what nobody can read.');
  await at.until(({ out }) => /node-deltas/.test(out), ['dead-letters', 'list']);
  await queues.nodeDeltasDead.purge();

  await at.run('takeover', 'status', 'beta');
  await at.run('takeover', 'apply', 'beta');
  at.compareShape(t, join(import.meta.dirname, 'transcripts.txt'));
});

test('status shows each part of a deployment, and its release', async () => {
  await deployed().withRelays(1);
  const { out, err } = await taintward('status', 'beta', '-o', 'json');
  const { versions, relays, deadLetters, backlog, unknown, clusters } = JSON.parse(out || err);
  assert.deepEqual(versions, { cli: VERSION, functions: VERSION, relays: [VERSION] });
  assert.deepEqual(
    relays.map(({ version, clusters }: RelayStatus) => [version, clusters]),
    [[VERSION, ['beta']]],
  );
  assert.deepEqual([clusters[0].breakerOpen, unknown], [false, []]);
  assert.ok(deadLetters && backlog);
});
