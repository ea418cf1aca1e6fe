import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { agentEnvironment } from '#shared/aws/environment.ts';

const MAIN = fileURLToPath(import.meta.resolve('#functions/agent/main.ts'));

/** Runs an agent without an environment, outside of a pod. */
function agent(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    env: {},
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('help explains the agent and each variable of its environment', () => {
  const { status, stdout, stderr } = agent('--help');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^Usage: npm run agent -- /);
  for (const name of [...Object.keys(agentEnvironment.shape), 'AWS_REGION']) {
    assert.match(stdout, new RegExp(`^  ${name} +\\w.*$`, 'm'));
  }
  assert.match(stdout, /^ {2}PROBE_PORT +port for them \(default: 8080\)$/m);
});

test('invalid arguments and environments are rejected in one sentence', () => {
  for (const [args, sentence] of [
    [[], /^taintward agent: .* AGENT .*\n$/],
    [['--table', 'taintward'], /^error: unknown option '--table'\n$/],
    [['--context', ''], /^error: .* name a context, or leave it out\.\n$/],
    [['--context', 'c', '--kubeconfig', ''], /^error: .*--kubeconfig/],
    [['edge'], /^error: too many arguments/],
    [['--kubeconfig', 'f'], /^error: --kubeconfig needs --context NAME: name the context of the cluster\n$/],
  ] as const) {
    const { status, stdout, stderr } = agent(...args);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, sentence);
  }
});
