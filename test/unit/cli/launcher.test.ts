import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const LAUNCHER = fileURLToPath(import.meta.resolve('#functions/cli/taintward.js'));

/** Runs the command line as its users do, without any AWS to talk to. */
function taintward(...args: string[]) {
  const env = { PATH: process.env['PATH'], AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_REGION: 'us-east-1' };
  const keys = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_MAX_ATTEMPTS: '1' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [LAUNCHER, ...args], {
    env: { ...env, ...keys },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('the launcher passes arguments on and gives the output back', () => {
  const { status, stdout } = taintward('clusters', '--help');
  assert.equal(status, 0);
  assert.match(stdout, /^Usage: taintward clusters /);
});

test('what goes wrong is one sentence and exit code 1', () => {
  assert.deepEqual(taintward('clusters', 'add', 'prod'), {
    status: 1,
    stdout: '',
    stderr:
      'taintward: Say how the cluster is reached: --eks NAME --region REGION, --kubeconfig-secret ARN, or --context NAME.\n',
  });
  const { status, stderr } = taintward('clusters', 'list');
  assert.equal(status, 1);
  assert.match(stderr, /^taintward: DynamoDB table taintward [^\n]*\n$/);
});
