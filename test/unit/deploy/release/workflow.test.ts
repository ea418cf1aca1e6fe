import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import * as z from 'zod';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const text = readFileSync(join(PROJECT_DIR, '.github/workflows/release.yml'), 'utf8');

const step = z.object({
  uses: z.string().optional(),
  run: z.string().optional(),
  if: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
const job = z.object({
  if: z.string().optional(),
  needs: z.union([z.string(), z.array(z.string())]).optional(),
  environment: z.string().optional(),
  'timeout-minutes': z.number(),
  permissions: z.record(z.string(), z.enum(['read', 'write'])),
  steps: z.array(step),
});
const { jobs, permissions } = z
  .object({ jobs: z.record(z.string(), job), permissions: z.strictObject({}) })
  .parse(load(text));

const ON_TAG = "github.event_name == 'push'";
const steps = Object.entries(jobs).flatMap(([name, { steps: of }]) => of.map((each) => ({ name, ...each })));
/** Commands whose effects others see or that can't be undone. */
const PUBLISHES =
  /--push\b|\bhelm push\b|\bcosign sign|\bnpm publish\b(?!.*--dry-run)|\bgh release create\b|docker login/;

test('jobs have only the permissions that they use, and none by default', () => {
  assert.deepEqual(permissions, {});
  const rights = Object.fromEntries(Object.entries(jobs).map(([name, each]) => [name, each.permissions]));
  assert.deepEqual(rights, {
    files: { contents: 'read', actions: 'read' },
    'dry-run': { contents: 'read' },
    'image-and-chart': { contents: 'read', packages: 'write', 'id-token': 'write', attestations: 'write' },
    npm: { 'id-token': 'write' },
    release: { contents: 'write', 'id-token': 'write', attestations: 'write' },
  });
});

test('only approved jobs of a tag publish or sign', () => {
  const publishing = new Set(
    steps
      .filter(({ run = '', uses = '' }) => PUBLISHES.test(run) || uses.includes('/attest'))
      .map(({ name }) => name),
  );
  assert.deepEqual([...publishing].toSorted(), ['image-and-chart', 'npm', 'release']);
  for (const name of publishing) {
    const { if: when, environment, needs = [] } = jobs[name] ?? assert.fail(name);
    assert.equal(when, ON_TAG, name);
    const approved = [needs].flat().some((other) => jobs[other]?.environment === 'release');
    assert.ok(environment === 'release' || approved, name);
  }
});

test('publishes only commits with matching tag, version, and changelog that passed CI', () => {
  const files = jobs['files']?.steps ?? [];
  const checks = files.filter(({ if: when, run }) => when === ON_TAG && run !== undefined);
  assert.match(
    checks.map(({ run }) => run).join('\n'),
    /release\/notes\.ts[\s\S]*gh run list --workflow ci\.yml --branch main /,
  );
  for (const [name, { needs = [] }] of Object.entries(jobs)) {
    assert.ok(name === 'files' || [needs].flat().includes('files'), name);
  }
});

test('commands contain no secret and no value that others can set', () => {
  for (const { name, run = '' } of steps) assert.ok(!run.includes('${{'), `${name}: ${run}`);
  assert.ok(!text.includes('secrets.'));
  for (const { uses = '', with: given } of steps) {
    if (uses.startsWith('actions/checkout@')) assert.equal(given?.['persist-credentials'], false);
  }
});

test('installs release inputs from the lockfile, without scripts and caches', () => {
  assert.deepEqual(text.match(/npm (?:ci|install).*/g), ['npm ci --ignore-scripts']);
  assert.ok(!text.includes('actions/cache'));
  for (const { uses = '', with: given } of steps) {
    if (uses.startsWith('actions/setup-node@')) assert.equal(given?.['package-manager-cache'], false);
  }
});
