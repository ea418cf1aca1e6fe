import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, test } from 'node:test';
import { systemErrorText } from '#shared/files/system-error.ts';
import { namingDatabase } from '#simulator/objects/state-file.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'system-error-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Returns the sentence for an error that `work` throws. */
function textOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    return systemErrorText(error);
  }
  return assert.fail('nothing was thrown');
}

test('describes a failed system call in one sentence with path and fix', () => {
  assert.equal(
    textOf(() => readFileSync(join(dir, 'missing'))),
    `Cannot open ${join(dir, 'missing')} (ENOENT): it does not exist; create it, or name another path.`,
  );
  writeFileSync(join(dir, 'file'), '');
  assert.match(
    textOf(() => mkdirSync(join(dir, 'file', 'below'))) ?? '',
    /^Cannot mkdir .*\/file\/below \(ENOTDIR\): a file stands in place of a directory above it; move that away\.$/,
  );
  assert.match(
    textOf(() => {
      throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', syscall: 'mkdir', path: '/state/cluster' });
    }) ?? '',
    /^Cannot mkdir \/state\/cluster \(ENOSPC\): its disk has no space or no inodes left; make room\.$/,
  );
});

test("keeps the system's message if the path or the remedy is unknown", () => {
  const error = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' });
  assert.equal(systemErrorText(error), 'The system call write failed: write EPIPE.');
});

test("describes a SQLite error in one sentence with the database's path", () => {
  const path = join(dir, 'd');
  writeFileSync(path, 'no database at all, '.repeat(100));
  const work = () => new DatabaseSync(path).exec('PRAGMA journal_mode = WAL');
  assert.equal(
    textOf(() => namingDatabase(path, work)),
    `The database ${path} cannot be used: it is another kind of file: name another path, or move it away (file is not a database).`,
  );
  assert.match(textOf(work) ?? '', /^The database cannot be used: /);
});

test('returns undefined for a programming error', () => {
  assert.equal(systemErrorText(new TypeError('x is not a function')), undefined);
  assert.equal(systemErrorText('text'), undefined);
});
