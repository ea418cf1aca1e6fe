import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { NpmStart } from '#test/world/npm-start.ts';

const COMMANDS = join(PROJECT_DIR, 'functions/cli/main.ts');

test('a second apply to a running service writes nothing, and a pause outlives a third', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'apply-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir: join(dir, 'cluster') });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const [state, fleet] = [join(dir, 'state'), join(dir, 'fleet')];
  const context = ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig];
  const service = new NpmStart(t, [...context, '--no-console', '--port', '0', '--log', 'json'], state);
  await service.event('relay.synced');
  const run = (...words: readonly string[]) => {
    const args = [COMMANDS, '--state-dir', state, ...words];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    return { status, stdout, stderr };
  };
  const entries = () => JSON.parse(run('audit', '-o', 'json').stdout);
  const declare = (settings: string, clusters = "['*']") =>
    writeFileSync(
      join(fleet, 'policy.yaml'),
      `apiVersion: taintward.dev/v1\nkind: Policy\nmetadata: { name: all }\nspec: { clusters: ${clusters}, policy: ${settings} }\n`,
    );

  mkdirSync(fleet);
  declare('{ mode: enforce }');
  assert.equal(run('policy', 'validate', '-f', fleet).status, 0);
  assert.equal(run('apply', '-f', fleet, '--dry-run').status, 2);
  assert.equal(run('apply', '-f', fleet).status, 1, 'nobody confirmed');
  assert.equal(entries().length, 0);
  assert.equal(run('apply', '-f', fleet, '--yes', '--reason', '4711abc').status, 0);
  const once = entries();
  assert.deepEqual(
    once.map(({ reason }: { readonly reason: string }) => reason),
    ['4711abc'],
  );
  assert.equal(run('apply', '-f', fleet, '--yes').status, 0);
  assert.equal(run('apply', '-f', fleet, '--prune', '--dry-run').status, 0);
  assert.equal(run('policy', 'diff', '-f', fleet).status, 0);
  assert.deepEqual(entries(), once);

  assert.equal(run('pause', cluster.context, '--reason', 'incident 4711', '--for', '4h').status, 0);
  declare('{ mode: enforce, evictionRate: 5 }');
  assert.equal(run('apply', '-f', fleet, '--yes').status, 0);
  assert.match(run('holds').stdout, /incident 4711/);

  declare('{ mode: observe }', '[elsewhere]');
  const { status, stderr } = run('apply', '-f', fleet, '--yes');
  assert.deepEqual([status, /cluster "elsewhere" not found/.test(stderr)], [1, true]);
});
