import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { STORE_FILE } from '#shared/state/sqlite/state-directory.ts';

const taintward = join(PROJECT_DIR, 'functions/cli/taintward.js');
const kubectlComplete = join(PROJECT_DIR, 'bin/kubectl_complete-taintward');

/** Returns the completions of the last word, without their descriptions. */
const offered = (...words: readonly string[]) => offeredBy(taintward, 'complete', '--', ...words);

const offeredBy = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.split('\t')[0] ?? '')
    .filter((word) => word !== '' && !word.startsWith(':'));

test('completes commands and their options', () => {
  assert.ok(offered('').includes('pending'));
  assert.deepEqual(offered('hold', 'w'), ['workload']);
  assert.deepEqual(offered('pending', '--st'), ['--stuck']);
  assert.deepEqual(offered('pending', '-o', 'j'), ['json']);
});

test('completes names of clusters, also for kubectl', async (t) => {
  const state = mkdtempSync(join(tmpdir(), 'completion-'));
  const store = new SqliteStore({ path: join(state, STORE_FILE) });
  t.after(() => {
    store.close();
    rmSync(state, { recursive: true });
  });
  const leases = sqliteLeases(store.database);
  for (const name of ['prod', 'stage']) await leases.take(clusterName(name), undefined, 'relay', 0);
  assert.deepEqual(offered('status', '--state-dir', state, ''), ['prod', 'stage']);
  assert.deepEqual(offered('stop', `--state-dir=${state}`, 'prod', 's'), ['stage']);
  assert.deepEqual(offered('hold', 'node', 'n1', '--state-dir', state, '--cluster', 'p'), ['prod']);
  assert.deepEqual(offeredBy(kubectlComplete, 'status', '--state-dir', state, 'p'), ['prod']);
  assert.deepEqual(offered('status', '--state-dir', '/nowhere', ''), []);
});

describe('each shell accepts its completion script', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    test(shell, (t) => {
      const script = execFileSync(taintward, ['completion', shell], { encoding: 'utf8' });
      assert.match(script, /taintward/);
      const { error, status, stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' });
      if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT')
        return t.skip(`there is no ${shell}`);
      assert.equal(status, 0, stderr);
    });
  }
});

test('kubectl finds the plugin on the PATH', (t) => {
  const bin = mkdtempSync(join(tmpdir(), 'plugin-'));
  t.after(() => rmSync(bin, { recursive: true }));
  symlinkSync(join(PROJECT_DIR, 'bin/kubectl-taintward'), join(bin, 'kubectl-taintward'));
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env['PATH']}` };
  const { error, stdout } = spawnSync('kubectl', ['taintward', '--version'], { env, encoding: 'utf8' });
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return t.skip('there is no kubectl');
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});
