import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ReleaseError } from '#deploy/release/error.ts';
import { release } from '#deploy/release/release.ts';

const CHANGELOG = '# Changelog\n\n## Unreleased\n\n- More.\n\n## 0.1.0 - 2026-01-01\n\n- All.\n';
const FILES = {
  'package.json': '{\n  "name": "some",\n  "version": "0.1.0"\n}\n',
  'package-lock.json':
    '{\n  "name": "some",\n  "version": "0.1.0",\n  "lockfileVersion": 3,\n  "packages": {\n    "": {\n      "name": "some",\n      "version": "0.1.0"\n    }\n  }\n}\n',
  'CHANGELOG.md': CHANGELOG,
  'deploy/chart/Chart.yaml': 'name: some\nversion: 0.1.0\nappVersion: 0.1.0\n',
  'deploy/other.yaml': 'kind: Namespace\n',
};

/** Creates a repository with one commit, and the release command for it. */
function repository(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'taintward-release-'));
  t.after(() => rmSync(root, { recursive: true }));
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [path, text] of Object.entries(FILES)) put(path, text);
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  for (const [key, value] of [
    ['user.name', 'Somebody'],
    ['user.email', 'somebody@example.com'],
    ['commit.gpgSign', 'false'],
    ['tag.gpgSign', 'false'],
  ] as const) {
    git('config', key, value);
  }
  git('add', '.');
  git('commit', '--quiet', '--message', 'All');
  const printed: string[] = [];
  const state = () => [git('log', '--format=%s'), git('tag'), git('status', '--porcelain')];
  return {
    root,
    put,
    git,
    printed,
    state,
    read: (path: string) => readFileSync(join(root, path), 'utf8'),
    release: (version: string, { dryRun = false, record = recordIn(put) } = {}) =>
      release(version, dryRun, { root, day: '2026-11-22', print: (line) => void printed.push(line), record }),
  };
}

const recordIn = (put: (path: string, text: string) => void) => (version: string) => {
  put(`written/${version}.json`, '{}\n');
  return [`written/${version}.json`];
};

test("a release writes the version into its files, moves the changelog's section, and commits and tags all of it", (t) => {
  const { release: make, read, git, printed, state } = repository(t);
  make('0.2.0');
  for (const path of ['package.json', 'package-lock.json']) {
    assert.equal(read(path), FILES[path as 'package.json'].replaceAll('0.1.0', '0.2.0'));
  }
  assert.equal(read('deploy/chart/Chart.yaml'), 'name: some\nversion: 0.2.0\nappVersion: 0.2.0\n');
  assert.match(read('CHANGELOG.md'), /## Unreleased\n\n## 0\.2\.0 - 2026-11-22\n\n- More\.\n\n## 0\.1\.0/);
  assert.deepEqual(state(), ['Release 0.2.0\nAll', 'v0.2.0', '']);
  assert.equal(git('rev-list', '-1', 'v0.2.0'), git('rev-parse', 'HEAD'));
  const changed = git('show', '--format=', '--name-only', 'HEAD').split('\n');
  assert.deepEqual(changed.toSorted(), [
    'CHANGELOG.md',
    'deploy/chart/Chart.yaml',
    'package-lock.json',
    'package.json',
    'written/0.2.0.json',
  ]);
  assert.match(printed.join('\n'), /git push origin HEAD:main\n.*git push origin v0\.2\.0/);
});

test('a dry run prints the files and the notes of the release, and changes nothing', (t) => {
  const { release: make, printed, state } = repository(t);
  const before = state();
  make('0.2.0', { dryRun: true });
  assert.deepEqual(state(), before);
  const text = printed.join('\n');
  for (const path of ['package.json', 'package-lock.json', 'CHANGELOG.md', 'deploy/chart/Chart.yaml']) {
    assert.ok(text.includes(`write ${path}`), path);
  }
  assert.ok(!text.includes('other.yaml'));
  assert.ok(text.endsWith('- More.'));
});

const REFUSED: readonly [
  what: string,
  version: string,
  message: RegExp,
  begun?: (r: ReturnType<typeof repository>) => void,
][] = [
  ['a version that is none', '0.2', /^0\.2 is no version: it has to be MAJOR\.MINOR\.PATCH/],
  ['a candidate', '0.2.0-rc.1', /is no version/],
  ['a version below that of package.json', '0.0.9', /^0\.0\.9 is below 0\.1\.0, which package\.json has/],
  ['a version that has a section', '0.1.0', /^CHANGELOG\.md has a section of 0\.1\.0 already/],
  ['a version that is tagged', '0.2.0', /^tag v0\.2\.0 exists/, ({ git }) => git('tag', 'v0.2.0')],
  [
    'a version below one that is tagged',
    '0.2.0',
    /^0\.2\.0 is below 0\.10\.0, which is released/,
    ({ git }) => git('tag', 'v0.10.0'),
  ],
  [
    'work that is not committed',
    '0.2.0',
    /^there are changes that are not committed/,
    ({ put }) => put('deploy/other.yaml', 'kind: Secret\n'),
  ],
  [
    'a file that is in no commit',
    '0.2.0',
    /^there are changes that are not committed/,
    ({ put }) => put('new', ''),
  ],
  [
    'nothing that is new',
    '0.2.0',
    /^CHANGELOG\.md has no entries below "## Unreleased"/,
    ({ put, git }) => {
      put('CHANGELOG.md', CHANGELOG.replace('- More.\n\n', ''));
      git('commit', '--quiet', '--all', '--message', 'Nothing');
    },
  ],
];

for (const [what, version, message, begun] of REFUSED) {
  test(`${what} is rejected with a reason`, (t) => {
    const repo = repository(t);
    begun?.(repo);
    const before = repo.state();
    for (const dryRun of [true, false]) {
      assert.throws(
        () => repo.release(version, { dryRun }),
        (error) => {
          assert.ok(error instanceof ReleaseError);
          assert.match(error.message, message);
          return true;
        },
      );
    }
    assert.deepEqual(repo.state(), before);
  });
}

test('a release that fails midway changes nothing', (t) => {
  const { release: make, state } = repository(t);
  const before = state();
  const record = () => {
    throw new Error('no room');
  };
  assert.throws(() => make('0.2.0', { record }), /no room/);
  assert.deepEqual(state(), before);
});
