import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openDatabase } from '#functions/local/sqlite-database.ts';
import { takeStateDirectory } from '#functions/local/state-directory.ts';

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
  database.exec('DELETE FROM leases');
  const rights = Object.fromEntries(readdirSync(path).map((name) => [name, rightsOf(join(path, name))]));
  database.close();
  state.release();
  return rights;
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
    mkdirSync(path, 0o777);
    assert.deepEqual(used(path), OWNER_ONLY);
    assert.equal(rightsOf(path), '777');
  });

  test('in which others could read files closes them', () => {
    used(root);
    const files = Object.keys(OWNER_ONLY).map((name) => join(root, name));
    for (const file of files) {
      if (!existsSync(file)) writeFileSync(file, '');
      chmodSync(file, 0o666);
    }
    assert.deepEqual(used(root), OWNER_ONLY);
  });

  test('has one user at a time', () => {
    const state = takeStateDirectory(root);
    assert.throws(() => takeStateDirectory(root), /is in use by another taintward, .* --state DIR$/);
    state.release();
    takeStateDirectory(root).release();
  });
});

describe('what can be no state directory is refused in one sentence that names --state', () => {
  const refusal = (path: string, why: RegExp) => ({
    name: 'StateDirectoryError',
    message: new RegExp(
      `^cannot use the state directory ${path} ${why.source}, or choose another with --state DIR$`,
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

  test("another user's", { skip: process.getuid?.() === 0 }, () => {
    const path = join(root, 'closed');
    mkdirSync(path, 0o500);
    assert.throws(() => takeStateDirectory(path), refusal(path, /\(EACCES\): make it readable and writable/));
  });
});
