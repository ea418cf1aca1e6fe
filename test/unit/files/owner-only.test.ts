import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  checkOwnDatabase,
  findOwn,
  findOwnDirectory,
  makeOwnerOnly,
  readOwn,
  replaceOwn,
} from '#shared/files/owner-only.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'owner-only-'));
  path = join(dir, 'file');
});
afterEach(() => rmSync(dir, { recursive: true }));

const uid = process.geteuid?.() ?? 0;
const foreign = (message: RegExp) => ({ name: 'ForeignFileError', message });

describe('findOwn', () => {
  test('returns a file of the caller, or nothing if there is none', () => {
    assert.equal(findOwn(path, 'file'), undefined);
    writeFileSync(path, 'text', { mode: 0o644 });
    assert.equal(findOwn(path, 'file')?.size, 4);
    assert.ok(findOwn(dir, 'directory')?.isDirectory());
  });

  test('rejects a file of another user and names path and fix', () => {
    writeFileSync(path, '');
    assert.throws(
      () => findOwn(path, 'file', uid + 1),
      foreign(/\/file belongs to another user \(\d+, not \d+\): run this as that user, or move it away$/),
    );
  });

  for (const mode of [0o620, 0o602, 0o666]) {
    test(`rejects a file that other users may write (${mode.toString(8)})`, () => {
      writeFileSync(path, '');
      chmodSync(path, mode);
      const why = new RegExp(`may be written by other users \\(mode ${mode.toString(8)}\\): .* chmod go-w `);
      assert.throws(() => findOwn(path, 'file'), foreign(why));
    });
  }

  test('rejects a directory that other users may write, sticky or not', () => {
    for (const mode of [0o777, 0o1777]) {
      chmodSync(dir, mode);
      assert.throws(() => findOwn(dir, 'directory'), foreign(/may be written by other users/));
    }
  });

  test('rejects a link, whatever its target', () => {
    symlinkSync(dir, join(dir, 'to-directory'));
    symlinkSync('/nowhere/at/all', path);
    assert.throws(() => findOwn(path, 'file'), foreign(/\/file is a link: move it away$/));
    assert.throws(() => findOwn(join(dir, 'to-directory'), 'directory'), foreign(/is a link/));
  });

  test('rejects another file type in place of a file or a socket', async () => {
    mkdirSync(path);
    assert.throws(() => findOwn(path, 'file'), foreign(/\/file is no file: move it away$/));
    assert.throws(() => findOwn(path, 'socket'), foreign(/\/file is no socket: move it away$/));
    const socket = join(dir, 'socket');
    const server = createServer().listen(socket);
    await new Promise((resolve) => server.once('listening', resolve));
    chmodSync(socket, 0o600);
    assert.ok(findOwn(socket, 'socket'));
    assert.throws(() => findOwn(socket, 'file'), foreign(/is no file/));
    assert.throws(() => findOwn(socket, 'socket', uid + 1), foreign(/belongs to another user/));
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('findOwnDirectory', () => {
  test('follows a link of the caller and returns its target', () => {
    const target = join(dir, 'target');
    mkdirSync(target, 0o755);
    symlinkSync(target, path);
    assert.equal(findOwnDirectory(path), findOwnDirectory(target));
    assert.equal(findOwnDirectory(join(dir, 'missing')), undefined);
  });

  test('rejects a link of another user, and a link to a directory that others may write', () => {
    const target = join(dir, 'target');
    mkdirSync(target, 0o755);
    symlinkSync(target, path);
    assert.throws(() => findOwnDirectory(path, uid + 1), foreign(/is a link of another user/));
    chmodSync(target, 0o777);
    assert.throws(() => findOwnDirectory(path), foreign(/target may be written by other users/));
  });
});

describe('readOwn and replaceOwn', () => {
  test('write a file for its owner alone and read it', () => {
    assert.equal(readOwn(path), undefined);
    replaceOwn(path, 'one');
    replaceOwn(path, 'two');
    assert.equal(readOwn(path), 'two');
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dir), ['file']);
  });

  test('write a file that its owner can read under any umask', () => {
    const umask = process.umask(0o777);
    try {
      replaceOwn(path, 'text');
    } finally {
      process.umask(umask);
    }
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  test('leave the target of a link unchanged', () => {
    const victim = join(dir, 'victim');
    writeFileSync(victim, 'precious', { mode: 0o644 });
    symlinkSync(victim, path);
    assert.throws(() => readOwn(path), foreign(/is a link/));
    assert.throws(() => replaceOwn(path, 'text'), foreign(/is a link/));
    rmSync(path);
    symlinkSync(victim, `${path}.new`);
    replaceOwn(path, 'text');
    assert.deepEqual([readFileSync(victim, 'utf8'), readFileSync(path, 'utf8')], ['precious', 'text']);
    assert.equal(statSync(victim).mode & 0o777, 0o644);
  });

  test('leave no temporary file when a write fails', () => {
    assert.throws(() => replaceOwn(path, Symbol('no text') as never));
    assert.ok(!existsSync(`${path}.new`));
  });
});

describe('a database', () => {
  test('is rejected if its log is a link, and the target keeps its mode', () => {
    const victim = join(dir, 'victim');
    writeFileSync(victim, 'precious', { mode: 0o644 });
    for (const part of ['', '-wal', '-shm', '-journal']) {
      symlinkSync(victim, `${path}${part}`);
      assert.throws(() => checkOwnDatabase(path), foreign(/is a link/));
      assert.throws(() => makeOwnerOnly(path), foreign(/is a link/));
      rmSync(`${path}${part}`);
    }
    assert.equal(statSync(victim).mode & 0o777, 0o644);
  });

  test('becomes private if other users could read it', () => {
    writeFileSync(path, '', { mode: 0o644 });
    chmodSync(path, 0o644);
    makeOwnerOnly(path);
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
  });

  test('stays usable with a second hard link, as backups make', () => {
    writeFileSync(path, '', { mode: 0o600 });
    linkSync(path, join(dir, 'backup'));
    checkOwnDatabase(path);
  });
});
