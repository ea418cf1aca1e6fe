import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const read = (file: string) => readFileSync(join(PROJECT_DIR, file), 'utf8');
/** The base image of each stage in the Dockerfile. */
const bases = [...read('Dockerfile').matchAll(/^FROM (?:--\S+ )*(\S+)/gm)].map(([, base = '']) => base);

test('all stages of the image use one base image, pinned by digest', () => {
  assert.ok(bases.length > 1);
  for (const base of bases) assert.match(base, /@sha256:[0-9a-f]{64}$/);
  assert.equal(new Set(bases).size, 1);
});

test('the base image has the Node.js version of the tests', () => {
  const { devDependencies } = JSON.parse(read('package.json'));
  for (const base of bases) assert.ok(base.includes(`/node:${devDependencies.node}-slim@`), base);
});
