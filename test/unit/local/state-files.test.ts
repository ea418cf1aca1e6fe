import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { StateFiles } from '#functions/local/state-files.ts';

/** An open database, where files that are made are readable to everybody. */
function openIn(t: TestContext) {
  const umask = process.umask(0);
  const dir = mkdtempSync(join(tmpdir(), 'state-files-'));
  const path = join(dir, 'store.sqlite');
  const database = new DatabaseSync(path);
  t.after(() => {
    database.close();
    rmSync(dir, { recursive: true });
    process.umask(umask);
  });
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE kept (a); INSERT INTO kept VALUES (1)');
  chmodSync(path, 0o600);
  return { path, files: new StateFiles(database, path) };
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

const keptIn = (path: string) => {
  const database = new DatabaseSync(path);
  const rows = database.prepare('SELECT a FROM kept').all();
  database.close();
  return rows.map(({ a }) => a);
};

test('a database that was deleted is written again, for its owner alone', (t) => {
  const { path, files } = openIn(t);
  rmSync(path);
  assert.throws(() => files.check(), { name: 'StateLostError', message: /was deleted while it was in use/ });
  assert.deepEqual([modeOf(path), keptIn(path)], ['600', [1]]);
});

test('a database in whose place another one was put is saved beside it, for its owner alone', (t) => {
  const { path, files } = openIn(t);
  const other = `${path}.other`;
  writeFileSync(other, '');
  renameSync(other, path);
  assert.throws(() => files.check(), { name: 'StateLostError', message: /is in \S+\.saved: start it again/ });
  assert.deepEqual([modeOf(`${path}.saved`), keptIn(`${path}.saved`)], ['600', [1]]);
});
