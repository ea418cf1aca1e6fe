import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { type Locked, locked, lockedRoot, manifest, production } from './lockfile.ts';

const paths = (found: readonly Locked[]): readonly string[] => found.map(({ path }) => path);
const REGISTRY = 'https://registry.npmjs.org/';

test('each package has a SHA-512 hash, even if bundled in another', () => {
  assert.ok(locked.length > 200);
  const known = new Set(
    paths(locked.filter(({ integrity }) => /^sha512-[\w+/]{86}==$/.test(integrity ?? ''))),
  );
  const houseOf = (path: string) => path.slice(0, path.lastIndexOf('/node_modules/'));
  const strangers = locked.filter(
    ({ path, inBundle }) => !known.has(path) && !(inBundle && known.has(houseOf(path))),
  );
  assert.deepEqual(paths(strangers), []);
});

test('packages come only from the registry: not from git, a folder, or a URL', () => {
  const elsewhere = locked.filter(
    ({ link, resolved }) => link || (resolved !== undefined && !resolved.startsWith(REGISTRY)),
  );
  assert.deepEqual(paths(elsewhere), []);
});

test('the manifest names exact versions, and the lockfile matches the manifest', () => {
  const { dependencies, devDependencies } = manifest;
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, name);
    assert.equal(locked.find(({ path }) => path === `node_modules/${name}`)?.version, version, name);
  }
  assert.deepEqual(lockedRoot.dependencies, dependencies);
  assert.deepEqual(lockedRoot.devDependencies, devDependencies);
});

test('packages with install scripts are allowed by name and never deployed', () => {
  const running = new Set(locked.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name));
  assert.deepEqual([...running].toSorted(), Object.keys(manifest.allowScripts).toSorted());
  assert.deepEqual(paths(production.filter(({ hasInstallScript }) => hasInstallScript)), []);
});

test('the image contains locked packages, none of which runs during the build', () => {
  const dockerfile = readFileSync(join(PROJECT_DIR, 'Dockerfile'), 'utf8');
  assert.deepEqual(dockerfile.match(/npm .*/g), ['npm ci --ignore-scripts']);
});
