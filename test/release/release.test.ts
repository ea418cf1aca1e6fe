import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/** A version above every release. */
const NEXT = '999.0.0';

describe('a release of this repository, made in a copy,', () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-copy-'));
  // Node detects nested test runs by this variable, and skips them.
  const { NODE_TEST_CONTEXT: _within, ...env } = process.env;
  const run = (program: string, ...args: readonly string[]) =>
    spawnSync(program, args, { cwd: dir, env, encoding: 'utf8' });
  const git = (...args: readonly string[]) => {
    const { status, stdout, stderr } = run('git', ...args);
    assert.equal(status, 0, stderr);
    return stdout.trim();
  };
  const node = (...args: readonly string[]) => run(process.execPath, ...args);
  before(() => {
    const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
    const files = execFileSync('git', listed, { cwd: PROJECT_DIR, encoding: 'utf8' }).split('\0');
    for (const file of files.filter((each) => each !== '' && existsSync(join(PROJECT_DIR, each)))) {
      cpSync(join(PROJECT_DIR, file), join(dir, file));
    }
    symlinkSync(join(PROJECT_DIR, 'node_modules'), join(dir, 'node_modules'));
    git('init', '--quiet');
    git('config', 'user.name', 'Somebody');
    git('config', 'user.email', 'somebody@example.com');
    git('config', 'commit.gpgSign', 'false');
    git('config', 'tag.gpgSign', 'false');
    // The pattern of .gitignore matches folders only, and this is a link.
    git('config', 'core.excludesFile', join(dir, '.git/ignored'));
    writeFileSync(join(dir, '.git/ignored'), 'node_modules\n');
    git('add', '--all');
    git('commit', '--quiet', '--message', 'All');
  });
  after(() => rmSync(dir, { recursive: true }));

  test('has one version in all places, and a tag that the workflow publishes', () => {
    const { status, stdout, stderr } = node('deploy/release/main.ts', NEXT);
    assert.equal(status, 0, stderr);
    assert.match(stdout, new RegExp(`^Release ${NEXT} is committed and tagged v${NEXT}\\.`));
    assert.deepEqual([git('tag'), git('status', '--porcelain')], [`v${NEXT}`, '']);
    const agreeing = node(
      '--test',
      'test/unit/deploy/release/version.test.ts',
      'test/unit/upgrade/formats.test.ts',
    );
    assert.equal(agreeing.status, 0, agreeing.stdout);
    const notes = node('deploy/release/notes.ts', `v${NEXT}`);
    assert.equal(notes.status, 0, notes.stderr);
    assert.match(notes.stdout, /^- /m);
  });

  test('records the formats that it sends and stores', () => {
    const written = (name: string) =>
      readFileSync(join(dir, 'test/unit/upgrade/written', `${name}.json`), 'utf8');
    assert.equal(written(NEXT), written('unreleased'));
    assert.ok(written(NEXT).includes(`"version": "${NEXT}"`));
  });

  test('cannot be repeated, and another tag is not published', () => {
    const again = node('deploy/release/main.ts', NEXT);
    assert.deepEqual([again.status, again.stdout], [1, '']);
    assert.match(again.stderr, new RegExp(`^taintward: no release: tag v${NEXT} exists, `));
    const other = node('deploy/release/notes.ts', 'v998.0.0');
    assert.deepEqual([other.status, other.stdout], [1, '']);
    assert.match(
      other.stderr,
      /^taintward: no release: the tag is v998\.0\.0, and package\.json has 999\.0\.0: /,
    );
  });
});
