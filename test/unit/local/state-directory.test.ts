import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { takeStateDirectory } from '#functions/local/state-directory.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'state-'));
});
afterEach(() => rmSync(root, { recursive: true }));

describe('a state directory', () => {
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
