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
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
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

/** What a running service leaves in a state directory, with the rights it has. */
function used(path: string): Readonly<Record<string, string>> {
  const state = takeStateDirectory(path);
  const database = openDatabase(state.file('store.sqlite'));
  database.exec('DELETE FROM objects');
  const permissions = Object.fromEntries(readdirSync(path).map((name) => [name, rightsOf(join(path, name))]));
  database.close();
  state.release();
  return permissions;
}

const OWNER_ONLY = {
  lock: '600',
  'lock-journal': '600',
  'store.sqlite': '600',
  'store.sqlite-shm': '600',
  'store.sqlite-wal': '600',
};

describe('a state directory', () => {
  for (const mask of [0, 0o022, 0o077, 0o777]) {
    test(`that is made is its owner's alone, under the umask ${mask.toString(8)}`, () => {
      process.umask(mask);
      const path = join(root, 'a', 'b');
      assert.deepEqual(used(path), OWNER_ONLY);
      assert.deepEqual([rightsOf(join(root, 'a')), rightsOf(path)], ['700', '700']);
    });
  }

  test('that was there keeps its rights, but nobody else reads what is put there', () => {
    const path = join(root, 'shared');
    mkdirSync(path, 0o755);
    assert.deepEqual(used(path), OWNER_ONLY);
    assert.equal(rightsOf(path), '755');
  });

  test('in which others could read files closes them', () => {
    used(root);
    const files = Object.keys(OWNER_ONLY).map((name) => join(root, name));
    for (const file of files) {
      if (!existsSync(file)) writeFileSync(file, '');
      chmodSync(file, 0o644);
    }
    assert.deepEqual(used(root), OWNER_ONLY);
  });

  test('has one user at a time', () => {
    const state = takeStateDirectory(root);
    assert.throws(
      () => takeStateDirectory(root),
      /is in use by another Taintward process\. Stop that process, or .* --state-dir DIR$/,
    );
    state.release();
    takeStateDirectory(root).release();
  });
});

describe('a state directory in the hands of somebody else is refused', () => {
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

  test('because it is another user’s', { skip: process.getuid?.() !== 0 }, () => {
    const path = join(root, 'theirs');
    mkdirSync(path);
    chownSync(path, 65_534, 65_534);
    assert.throws(() => takeStateDirectory(path), foreign(/theirs belongs to another user \(65534, not 0\)/));
    assert.throws(() => isInUse(path), foreign(/theirs belongs to another user/));
  });

  test('because its lock is a link: the target keeps its rights', () => {
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

  test('unless it is the link that its user made to their own', () => {
    const state = takeStateDirectory(join(root, 'state'));
    symlinkSync(join(root, 'state'), join(root, 'link'));
    assert.throws(() => takeStateDirectory(join(root, 'link')), /is in use by another Taintward process/);
    // Nobody named a directory that was only found.
    assert.throws(() => isInUse(join(root, 'link')), foreign(/link is a link/));
    state.release();
  });
});

describe('whether a state directory is in use', () => {
  test('is told by a lock that a process holds', () => {
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
    test(`is not told by a lock that is ${what}`, () => {
      writeFileSync(join(root, 'lock'), text, { mode: 0o644 });
      assert.equal(isInUse(root), false);
    });
  }
});

describe('what can be no state directory is refused in one sentence that names --state-dir', () => {
  const refusal = (path: string, why: RegExp) => ({
    name: 'StateDirectoryError',
    message: new RegExp(
      `^cannot use the state directory ${path} ${why.source}, or choose another with --state-dir DIR$`,
    ),
  });

  test('a file, and what would be below one', () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    const why = /\((EEXIST|ENOTDIR)\): a file stands in its place, .*; move it away/;
    assert.throws(() => takeStateDirectory(file), refusal(file, why));
    assert.throws(() => takeStateDirectory(join(file, 'below')), refusal(join(file, 'below'), why));
  });

  test('a place that takes no directories and no files', { skip: !existsSync('/proc/self') }, () => {
    const why = /\([A-Z_]+\): make it readable and writable/;
    assert.throws(() => takeStateDirectory('/proc/nope'), refusal('/proc/nope', why));
    assert.throws(() => takeStateDirectory('/proc/self'), refusal('/proc/self', why));
  });

  test('whose lock is no database, or a directory', () => {
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

  test("another user's", { skip: process.getuid?.() === 0 }, () => {
    const path = join(root, 'closed');
    mkdirSync(path, 0o500);
    assert.throws(() => takeStateDirectory(path), refusal(path, /\(EACCES\): make it readable and writable/));
  });
});
