import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';

const SERVICE = join(PROJECT_DIR, 'functions/service/main.ts');
const COMMANDS = join(PROJECT_DIR, 'functions/cli/main.ts');
const run = promisify(execFile);

/** Runs `npm start --policy` in a process of its own, from its first line to the first of this event, and kills it. */
async function started(t: TestContext, args: readonly string[], event: string) {
  const child = spawn(process.execPath, [SERVICE, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const said = text(child.stderr);
  const lines: { readonly event: string; readonly mode?: string; readonly file?: string }[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line));
    if (lines.at(-1)?.event === event) break;
  }
  const kill = async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  if (lines.at(-1)?.event !== event) assert.fail(`the service ended: ${(await said).slice(-1_000)}`);
  const policies = lines.filter((line) => line.event.startsWith('policy.'));
  return {
    kill,
    policies: policies.map(({ event: what, mode, file }) => [what, mode, file].join(' ').trim()),
  };
}

test('keeps a pause across kill -9 and a restart with the same --policy, and applies an edited file immediately', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'policy-file-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir: join(dir, 'cluster') });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const [state, policy] = [join(dir, 'state'), join(dir, 'policy.yaml')];
  const args = [
    ...['--context', cluster.context, '--kubeconfig', cluster.kubeconfig, '--state-dir', state],
    ...['--policy', policy, '--no-console', '--port', '0', '--log', 'json'],
  ];
  const command = async (...words: readonly string[]) =>
    (await run(process.execPath, [COMMANDS, '--state-dir', state, ...words])).stdout;

  writeFileSync(policy, 'mode: enforce\nguard: off\n');
  const first = await started(t, args, 'relay.synced');
  assert.deepEqual(first.policies, ['policy.applied enforce']);
  await command('pause', cluster.context, '--reason', 'incident 4711', '--for', '4h');
  await first.kill();

  const second = await started(t, args, 'relay.synced');
  assert.deepEqual(second.policies, ['policy.kept paused unchanged']);
  assert.match(await command('policy', 'get', cluster.context), /^mode: paused$/m);
  await second.kill();

  writeFileSync(policy, 'mode: observe\n');
  const third = await started(t, args, 'relay.synced');
  assert.deepEqual(third.policies, ['policy.applied observe']);
  await third.kill();
});
