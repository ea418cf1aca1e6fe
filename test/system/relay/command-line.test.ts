import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { relayEnvironment } from '#shared/aws/environment.ts';

const MAIN = fileURLToPath(import.meta.resolve('#functions/relay/main.ts'));

/** Runs the relay without an environment. */
function relay(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    env: {},
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('help explains the relay and each variable of its environment', () => {
  const { status, stdout, stderr } = relay('--help');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^Usage: npm run relay -- /);
  for (const name of [...Object.keys(relayEnvironment.shape), 'AWS_REGION']) {
    assert.match(stdout, new RegExp(`^  ${name} +\\w.*$`, 'm'));
  }
  assert.match(stdout, /^ {2}PROBE_PORT +port for them \(default: 8080\)$/m);
});

test('unknown options are rejected in one sentence', () => {
  const unknown = relay('--table', 'taintward');
  assert.deepEqual(unknown, { status: 1, stdout: '', stderr: "error: unknown option '--table'\n" });
});
