import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { licenceTexts } from '#deploy/build/licence-texts.ts';
import { type Locked, locked, production } from './lockfile.ts';

/** Licenses of deployed packages, which require only attribution for redistribution. The names are SPDX, as written by packages. */
const DEPLOYED = [
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'MIT-0'],
  ...['PSF-2.0', 'Python-2.0', 'Unlicense'],
];

/** Additional licenses of tools, which are used unchanged and not redistributed. In a choice, one license must be in the list above. */
const OF_TOOLS = [
  ...['CC-BY-3.0', 'CC-BY-4.0', 'CC0-1.0', 'MPL-2.0'],
  ...['MIT OR Apache-2.0', '(MIT OR GPL-3.0-or-later)', '(MIT OR CC0-1.0)'],
];

const labelOf = ({ name, version, license }: Locked) => `${name}@${version}: ${license ?? 'no licence'}`;

test('each deployable package has a license that allows deployment', () => {
  assert.ok(production.length > 100);
  assert.deepEqual(production.filter(({ license = '' }) => !DEPLOYED.includes(license)).map(labelOf), []);
});

test('every tool has a license that allows its use', () => {
  const allowed = [...DEPLOYED, ...OF_TOOLS];
  assert.deepEqual(locked.filter(({ license = '' }) => !allowed.includes(license)).map(labelOf), []);
});

test('installed packages have the licenses in the lockfile', () => {
  // Packages for other systems are not installed.
  const installed = locked.filter(({ path }) => existsSync(join(PROJECT_DIR, path, 'package.json')));
  assert.ok(installed.length > 200);
  const others = installed.filter(({ path, version, license }) => {
    const own = JSON.parse(readFileSync(join(PROJECT_DIR, path, 'package.json'), 'utf8'));
    return own.version === version && own.license !== license;
  });
  assert.deepEqual(others.map(labelOf), []);
});

test('redistributes each license and notice of deployable packages', () => {
  const folders = production.map(({ path }) => path).filter((path) => existsSync(join(PROJECT_DIR, path)));
  const texts = licenceTexts({
    metafile: { outputs: {} },
    beside: folders.map((path) => `${path}/index.js`),
  });
  const files = folders.flatMap((path) =>
    readdirSync(join(PROJECT_DIR, path))
      .filter((file) => /licen[cs]e|copying|notice/i.test(file))
      .map((file) => join(path, file)),
  );
  const left = files.filter((file) => !texts.includes(readFileSync(join(PROJECT_DIR, file), 'utf8').trim()));
  assert.ok(files.length > 100);
  assert.deepEqual(left, []);
});
