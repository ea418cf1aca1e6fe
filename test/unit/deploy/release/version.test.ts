import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { unreleased, versions } from '#deploy/release/changelog.ts';
import { project, REPOSITORY } from '#deploy/release/project.ts';
import { compareVersions, parseVersion, type Version } from '#deploy/release/version.ts';
import { placesOf, versionsIn, withVersion } from '#deploy/release/version-places.ts';
import { VERSION } from '#shared/version.ts';

const read = (path: string) => readFileSync(join(PROJECT_DIR, path), 'utf8');

test("all files with the project's version match package.json", () => {
  assert.equal(JSON.parse(read('package-lock.json')).version, VERSION);
  const others = placesOf(PROJECT_DIR).flatMap((path) =>
    versionsIn(readFileSync(path, 'utf8'))
      .filter((version) => version !== VERSION)
      .map((version) => `${relative(PROJECT_DIR, path)} names ${version}`),
  );
  assert.deepEqual(others, []);
});

test("the changelog's newest section is not above the version", () => {
  const changelog = read('CHANGELOG.md');
  const [newest = assert.fail('it has no section')] = versions(changelog).map(parseVersion);
  const version = parseVersion(VERSION);
  assert.ok(newest && version && compareVersions(newest, version) <= 0);
  assert.ok(unreleased(changelog) !== undefined || compareVersions(newest, version) === 0);
});

test('the image and the npm package name the same source repository', () => {
  assert.match(read('Dockerfile'), new RegExp(`image.source="${REPOSITORY}"`));
  assert.ok(
    read('deploy/release/npm-readme.md').includes(`${REPOSITORY}/blob/main/docs/how-to/verify-release.md`),
  );
  assert.match(read('Dockerfile'), new RegExp(`image.licenses="${project.license}"`));
});

test('finds the version in the chart, its image, and its labels only', () => {
  const text = [
    'version: 0.1.0',
    'appVersion: "0.1.0"',
    'image: ghcr.io/taintward/taintward:0.1.0',
    'helm.sh/chart: taintward-0.1.0',
    'app.kubernetes.io/version: 0.1.0',
    'kubeVersion: ">=1.27.0-0"',
    'image: registry.example/other:1.2.3',
  ].join('\n');
  assert.equal(versionsIn(text).length, 5);
  const moved = withVersion(text, '0.2.0');
  assert.deepEqual(versionsIn(moved), Array(5).fill('0.2.0'));
  assert.ok(moved.endsWith('">=1.27.0-0"\nimage: registry.example/other:1.2.3'));
});

test('parses versions and orders them numerically', () => {
  for (const none of ['1.0', 'v1.0.0', '1.0.0-rc.1', '01.0.0', '1.0.0 ', '']) {
    assert.equal(parseVersion(none), undefined, none);
  }
  const version = fc.tuple(fc.nat(), fc.nat(), fc.nat());
  fc.assert(
    fc.property(version, version, (one: Version, other: Version) => {
      assert.deepEqual(parseVersion(one.join('.')), one);
      assert.equal(Math.sign(compareVersions(one, other)), -Math.sign(compareVersions(other, one)));
      assert.equal(compareVersions(one, other) === 0, one.join() === other.join());
    }),
  );
  assert.ok(compareVersions([0, 10, 0], [0, 9, 9]) > 0);
});
