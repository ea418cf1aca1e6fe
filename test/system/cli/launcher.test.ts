import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const LAUNCHER = fileURLToPath(import.meta.resolve('#functions/cli/taintward.js'));

const REGION = { AWS_REGION: 'us-east-1' };
const KEY = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
const NO_AWS = {
  AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
  AWS_MAX_ATTEMPTS: '1',
  AWS_EC2_METADATA_DISABLED: 'true',
};

/** Runs the command line as its users do, without access to AWS. */
const taintward = (...args: string[]) => taintwardIn({ ...REGION, ...KEY }, ...args);

/** Runs the same with only `aws` as AWS configuration. */
function taintwardIn(aws: Readonly<Record<string, string>>, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [LAUNCHER, ...args], {
    env: { PATH: process.env['PATH'], HOME: '/nobody', TAINTWARD_TABLE: 'taintward', ...NO_AWS, ...aws },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('the launcher passes arguments on and returns the output', () => {
  const { status, stdout } = taintward('clusters', '--help');
  assert.equal(status, 0);
  assert.match(stdout, /^Usage: taintward clusters /);
});

test('rejects invalid arguments in one sentence with exit code 64', () => {
  const { status, stdout, stderr } = taintward('clusters', 'add', 'prod');
  assert.deepEqual([status, stdout], [64, '']);
  assert.match(stderr, /^taintward: [^\n]* --eks [^\n]*\n$/);
});

test('rejects commands without access to AWS in one sentence with exit code 1', () => {
  const { status, stderr } = taintward('clusters', 'list');
  assert.equal(status, 1);
  assert.match(stderr, /^taintward: DynamoDB table taintward [^\n]*\n$/);
});

const LACKS: readonly [string, Readonly<Record<string, string>>, RegExp][] = [
  ['a region', KEY, /^taintward: [^\n]* AWS_REGION,[^\n]* AWS_PROFILE [^\n]*\n$/],
  ['a usable region', { ...KEY, AWS_REGION: 'us east' }, /^taintward: [^\n]* AWS_REGION, [^\n]*\n$/],
  ['credentials', REGION, /^taintward: [^\n]*\(AWS_PROFILE\)[^\n]*\n$/],
];
for (const [what, aws, message] of LACKS) {
  test(`names the missing setting in one sentence without ${what}`, () => {
    const { status, stdout, stderr } = taintwardIn(aws, 'clusters', 'list');
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, message);
  });
}

test('command line and npm start require npm ci in one sentence', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'clone-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const installed = join(PROJECT_DIR, 'bin/installed.js');
  for (const file of [LAUNCHER, installed]) {
    const copy = join(dir, `${basename(file, '.js')}.mjs`);
    copyFileSync(file, copy);
    const { status, stderr } = spawnSync(process.execPath, [copy], { encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, /^taintward: the dependencies are not installed: run npm ci in [^\n]*\n$/);
    assert.equal(spawnSync(process.execPath, [installed]).status, 0);
  }
});
