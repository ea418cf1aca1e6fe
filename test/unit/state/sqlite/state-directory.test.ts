import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openDatabase, openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { isInUse, takeStateDirectory } from '#shared/state/sqlite/state-directory.ts';

let root: string;
let umask: number;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'state-'));
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
  rmSync(root, { recursive: true });
});

const rightsOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** Returns the modes of the files that a running service leaves in a state directory. */
function used(path: string): Readonly<Record<string, string>> {
  const state = takeStateDirectory(path);
  const databases = [openDatabase(state.file('store.sqlite')), openRulesDatabase(state.file('rules.sqlite'))];
  for (const each of databases) each.exec('BEGIN IMMEDIATE; CREATE TABLE other (a)');
  const permissions = Object.fromEntries(readdirSync(path).map((name) => [name, rightsOf(join(path, name))]));
  for (const each of databases) each.close();
  state.release();
  return permissions;
}

const OWNER_ONLY = {
  lock: '600',
  'lock-journal': '600',
  'rules.sqlite': '600',
  'rules.sqlite-journal': '600',
  'store.sqlite': '600',
  'store.sqlite-shm': '600',
  'store.sqlite-wal': '600',
};

describe('a state directory', () => {
  for (const mask of [0, 0o022, 0o077, 0o777]) {
    test(`is created for its owner alone, under the umask ${mask.toString(8)}`, () => {
      process.umask(mask);
      const path = join(root, 'a', 'b');
      assert.deepEqual(used(path), OWNER_ONLY);
      assert.deepEqual([rightsOf(join(root, 'a')), rightsOf(path)], ['700', '700']);
    });
  }

  test('keeps the mode of an existing directory, but makes new files private', () => {
    const path = join(root, 'shared');
    mkdirSync(path, 0o755);
    assert.deepEqual(used(path), OWNER_ONLY);
    assert.equal(rightsOf(path), '755');
  });

  test('makes files private that others could read', () => {
    used(root);
    const files = Object.keys(OWNER_ONLY).map((name) => join(root, name));
    for (const file of files) {
      if (!existsSync(file)) writeFileSync(file, '');
      chmodSync(file, 0o644);
    }
    assert.deepEqual(used(root), OWNER_ONLY);
  });

  test('permits one process at a time', () => {
    const state = takeStateDirectory(root);
    assert.throws(
      () => takeStateDirectory(root),
      /is in use by another Taintward process\. Stop that process, or .* --state-dir DIR$/,
    );
    state.release();
    takeStateDirectory(root).release();
  });
});

describe('a state directory that other users control is rejected', () => {
  const foreign = (message: RegExp) => ({ name: 'ForeignFileError', message });

  test('because others may write it', () => {
    const path = join(root, 'shared');
    mkdirSync(path, 0o777);
    assert.throws(
      () => takeStateDirectory(path),
      foreign(/shared may be written by other users \(mode 777\)/),
    );
    assert.throws(() => isInUse(path), foreign(/shared may be written by other users/));
    assert.deepEqual(readdirSync(path), []);
  });

  test('because it belongs to another user', {
    skip: process.getuid?.() !== 0 && 'only root may give a directory away',
  }, () => {
    const path = join(root, 'theirs');
    mkdirSync(path);
    chownSync(path, 65_534, 65_534);
    assert.throws(() => takeStateDirectory(path), foreign(/theirs belongs to another user \(65534, not 0\)/));
    assert.throws(() => isInUse(path), foreign(/theirs belongs to another user/));
  });

  test('because its lock is a link, whose target keeps its mode', () => {
    const victim = join(root, 'victim');
    writeFileSync(victim, 'precious', { mode: 0o644 });
    chmodSync(victim, 0o644);
    const path = join(root, 'state');
    mkdirSync(path, 0o755);
    symlinkSync(victim, join(path, 'lock'));
    assert.throws(() => takeStateDirectory(path), foreign(/lock is a link: move it away$/));
    assert.throws(() => isInUse(path), foreign(/lock is a link/));
    assert.equal(rightsOf(victim), '644');
  });

  test('because the log of its lock is a link', () => {
    const path = join(root, 'state');
    takeStateDirectory(path).release();
    symlinkSync(join(root, 'elsewhere'), join(path, 'lock-journal'));
    assert.throws(() => isInUse(path), foreign(/lock-journal is a link: move it away$/));
  });

  test('unless it is a link of its user to their own directory', () => {
    const state = takeStateDirectory(join(root, 'state'));
    symlinkSync(join(root, 'state'), join(root, 'link'));
    assert.throws(() => takeStateDirectory(join(root, 'link')), /is in use by another Taintward process/);
    // `isInUse` rejects links, because the user did not name the directory.
    assert.throws(() => isInUse(join(root, 'link')), foreign(/link is a link/));
    state.release();
  });
});

describe('isInUse', () => {
  test('returns true while a process holds the lock', () => {
    assert.equal(isInUse(root), false);
    const state = takeStateDirectory(root);
    assert.equal(isInUse(root), true);
    state.release();
    assert.equal(isInUse(root), false);
  });

  for (const [what, text] of Object.entries({
    'no database': 'this is no database, and so "in use"',
    empty: '',
    'a damaged database': `SQLite format 3\0${'x'.repeat(4_096)}`,
  })) {
    test(`returns false for a lock file that is ${what}`, () => {
      writeFileSync(join(root, 'lock'), text, { mode: 0o644 });
      assert.equal(isInUse(root), false);
    });
  }
});

describe('an invalid state directory is rejected in one sentence that names --state-dir', () => {
  const refusal = (path: string, why: RegExp) => ({
    name: 'StateDirectoryError',
    message: new RegExp(
      `^cannot use the state directory ${path} ${why.source}, or choose another with --state-dir DIR$`,
    ),
  });

  test('if it is a file or below a file', () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    const why = /\((EEXIST|ENOTDIR)\): a file stands in its place, .*; move it away/;
    assert.throws(() => takeStateDirectory(file), refusal(file, why));
    assert.throws(() => takeStateDirectory(join(file, 'below')), refusal(join(file, 'below'), why));
  });

  test("if directories and files can't be created", {
    skip: !existsSync('/proc/self') && 'there is no /proc, in which nobody creates files',
  }, () => {
    const why = /\([A-Z_]+\): make it readable and writable/;
    assert.throws(() => takeStateDirectory('/proc/nope'), refusal('/proc/nope', why));
    assert.throws(() => takeStateDirectory('/proc/self'), refusal('/proc/self', why));
  });

  test('if its lock is a directory or not a database', () => {
    writeFileSync(join(root, 'lock'), 'this is no database'.repeat(100), { mode: 0o600 });
    assert.throws(() => takeStateDirectory(root), {
      name: 'StateDirectoryError',
      message:
        /^cannot lock the state directory .* by its file "lock": it is another kind of file: .*, or choose another with --state-dir DIR$/,
    });
    rmSync(join(root, 'lock'));
    mkdirSync(join(root, 'lock'));
    assert.throws(() => takeStateDirectory(root), { message: /lock is no file: move it away$/ });
  });

  test('if it belongs to another user', {
    skip: process.getuid?.() === 0 && 'root may write into any directory',
  }, () => {
    const path = join(root, 'closed');
    mkdirSync(path, 0o500);
    assert.throws(() => takeStateDirectory(path), refusal(path, /\(EACCES\): make it readable and writable/));
  });
});
