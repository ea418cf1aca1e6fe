import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openDatabase, openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';

describe('openDatabase', () => {
  let directory: string;
  let path: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'store-'));
    path = join(directory, 'taintward.db');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const refusal = (reason: string) => ({
    name: 'StoreError',
    message: new RegExp(`^The database ${path.replaceAll('.', '\\.')} cannot be used: ${reason}`),
  });

  test('creates a database that can be opened again, even while it is open', () => {
    const first = openDatabase(path);
    const second = openDatabase(path);
    first.close();
    second.close();
    openDatabase(path).close();
  });

  test('names a missing directory', () => {
    path = join(directory, 'missing', 'taintward.db');
    assert.throws(() => openDatabase(path), refusal('its directory is missing or closed to this user'));
  });

  test('rejects a directory', () => {
    assert.throws(() => openDatabase(directory), {
      name: 'ForeignFileError',
      message: /is no file: move it away$/,
    });
  });

  test('rejects a file that is not a database and keeps it unchanged', () => {
    writeFileSync(path, 'not a database at all, but long enough to be looked at as one'.repeat(20));
    const { size } = statSync(path);
    assert.throws(() => openDatabase(path), refusal('it is another kind of file'));
    assert.equal(statSync(path).size, size);
  });

  test("rejects another program's database and keeps it unchanged", () => {
    const foreign = new DatabaseSync(path);
    foreign.exec('CREATE TABLE theirs (id INTEGER); PRAGMA user_version = 1;');
    foreign.close();
    assert.throws(() => openDatabase(path), refusal('it belongs to another program'));
    const again = new DatabaseSync(path);
    assert.deepEqual(
      again
        .prepare('SELECT name FROM sqlite_schema')
        .all()
        .map(({ name }) => name),
      ['theirs'],
    );
    again.close();
  });

  for (const [version, reason] of [
    [14, 'a newer release wrote it \\(schema 14, this one knows 13\\); upgrade'],
    [
      12,
      'an older release wrote it \\(schema 12, this one knows 13\\); move it away and set policies, stops and holds again, or',
    ],
    [1, 'an older release wrote it \\(schema 1, this one knows 13\\); move it away'],
  ] as const) {
    test(`rejects a database of another release: schema ${version}`, () => {
      const database = openDatabase(path);
      database.exec(`PRAGMA user_version = ${version}`);
      database.close();
      assert.throws(() => openDatabase(path), refusal(reason));
    });
  }

  test('rejects the database of rules in the place of records, and the reverse', () => {
    openRulesDatabase(path).close();
    assert.throws(() => openDatabase(path), refusal('it belongs to another program'));
    const records = join(directory, 'records.db');
    openDatabase(records).close();
    assert.throws(() => openRulesDatabase(records), {
      name: 'StoreError',
      message: /belongs to another program/,
    });
  });

  test('keeps committed rules in the file itself, synced with its directory', () => {
    const rules = openRulesDatabase(path);
    const pragma = (name: string) => rules.prepare(`PRAGMA ${name}`).get()?.[name];
    assert.deepEqual([pragma('journal_mode'), pragma('synchronous')], ['delete', 3]);
    rules.close();
  });

  test('rejects a damaged database', () => {
    openDatabase(path).close();
    writeFileSync(path, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4096, 7)]));
    assert.throws(() => openDatabase(path), refusal('it is (another kind of file|damaged)'));
  });
});
