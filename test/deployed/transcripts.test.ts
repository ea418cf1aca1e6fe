import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import type { RelayStatus } from '#functions/operator/status.ts';
import { VERSION } from '#shared/version.ts';
import { until } from '#test/cluster/rig/until.ts';
import { type Said, Transcript } from '#test/transcripts/transcript.ts';
import { ROOT } from './rig/command.ts';
import { deployed } from './rig/deployed-stage.ts';
import { accountEnvironment } from './rig/emulated-account.ts';

const SOON_MS = 20_000;

/** As a process of its own: its account is in the environment. */
function taintward(...args: readonly string[]): Promise<Said> {
  const { account, state } = deployed();
  const env = { ...accountEnvironment(account.url), TAINTWARD_TABLE: state.tableName };
  return new Promise((resolve) =>
    execFile(process.execPath, [join(ROOT, 'functions/cli/main.ts'), ...args], { env }, (error, out, err) =>
      resolve({ out, err, code: Number(error?.code ?? 0) }),
    ),
  );
}

test('a session at a deployment', async (t) => {
  const { queues, alpha, beta } = deployed();
  await deployed().withRelays(1);
  await queues.evictionsDueDead.purge();
  const names = new Map<string | RegExp, string>([
    // They have the names of runs in them.
    ...[alpha, beta].map(({ name, secretArn }) => [secretArn, `<secret of ${name}>`] as const),
    ...[alpha, beta].map(({ cluster }) => [cluster.run, 'run'] as const),
    // As many as the stand-in's machine runs, and as there are.
    [/(?<=Lambda runs |alarms +Of )\d+/g, '<count>'] as const,
  ]);
  const at = new Transcript({ run: taintward, names });
  await at.say('clusters', 'list');
  await at.say('doctor', 'beta');
  await queues.nodeDeltas.send('{"v":1,"kind":"node","cluster":"alpha"}', { group: 'told', id: 'told' });
  await until('the dead letter', SOON_MS, () => queues.nodeDeltasDead.peek());
  at.note('Somebody sent what nobody can read.');
  await at.until(({ out }) => /node-deltas/.test(out), ['dead-letters', 'list']);
  await queues.nodeDeltasDead.purge();
  await at.say('hold', 'node', 'n1', '--cluster', 'beta', '--why', 'it is being mended');
  await at.say('holds', 'beta');
  await at.say('policy', 'get', 'beta');
  await at.say('history', 'nowhere');
  await at.say('status', 'nowhere');
  at.compare(t, join(import.meta.dirname, 'transcripts.txt'));
});

test('status tells of each part of a deployment, and its release', async () => {
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
