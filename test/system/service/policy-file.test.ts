import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { NpmStart } from '#test/world/npm-start.ts';

const COMMANDS = join(PROJECT_DIR, 'functions/cli/main.ts');
const run = promisify(execFile);

/** Runs `npm start --policy` until it has listed its cluster; returns what it logged of policies. */
async function started(t: TestContext, args: readonly string[], state: string) {
  const service = new NpmStart(t, args, state);
  await service.event('relay.synced');
  const lines: readonly Readonly<Record<string, string>>[] = service.out.all.map((line) => JSON.parse(line));
  const policies = lines.filter((line) => line['event']?.startsWith('policy.'));
  return {
    kill: async () => {
      service.signal('SIGKILL');
      await service.exit;
    },
    policies: policies.map(({ event, mode, file }) => [event, mode, file].join(' ').trim()),
  };
}

test('keeps a pause across kill -9, restarts, and an edited file of --policy, which is applied immediately', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'policy-file-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir: join(dir, 'cluster') });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const [state, policy] = [join(dir, 'state'), join(dir, 'policy.yaml')];
  const args = [
    ...['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    ...['--policy', policy, '--no-console', '--port', '0', '--log', 'json'],
  ];
  const command = async (...words: readonly string[]) =>
    (await run(process.execPath, [COMMANDS, '--state-dir', state, ...words])).stdout;

  writeFileSync(policy, 'mode: enforce\nguard: off\n');
  const first = await started(t, args, state);
  assert.deepEqual(first.policies, ['policy.applied enforce']);
  await command('pause', cluster.context, '--reason', 'incident 4711', '--for', '4h');
  await first.kill();

  const second = await started(t, args, state);
  assert.deepEqual(second.policies, []);
  assert.match(await command('holds'), /incident 4711/);
  await second.kill();

  writeFileSync(policy, 'mode: observe\n');
  const third = await started(t, args, state);
  assert.deepEqual(third.policies, ['policy.applied observe']);
  assert.match(await command('holds'), /incident 4711/);
  await third.kill();
});
