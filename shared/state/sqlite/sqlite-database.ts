import { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import {
  checkOwnDatabase,
  createOwnerOnly,
  ForeignFileError,
  makeOwnerOnly,
} from '#shared/files/owner-only.ts';
import { sqliteCode, sqliteFault, systemErrorText } from '#shared/files/system-error.ts';
import { StoreError } from '#shared/state/store.ts';

/** The version of the tables below, kept in the file as `user_version`. */
const SCHEMA_VERSION = 12;
/** That of the releases before objects, which is brought over. */
const OLDER_VERSION = 11;
/** Marks the file as ours ("TntW"), so that no other program's database is written into. */
const APPLICATION_ID = 0x546e7457;
/** How long a statement waits for another process's transaction. */
const BUSY_TIMEOUT_MS = 5_000;

/** Objects, and what is appended beside them: history and audit have no TTL, because who removes them knows how long they are kept. */
const OBJECTS = `
  CREATE TABLE objects (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    summary TEXT,
    json TEXT NOT NULL,
    UNIQUE (kind, name)
  ) STRICT;

`;
const LOGS = `
  CREATE TABLE ended (
    id INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL,
    node TEXT NOT NULL,
    uid TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX ended_recently ON ended (cluster, node, ended_at);
  CREATE INDEX ended_history ON ended (cluster, ended_at);
  CREATE INDEX ended_age ON ended (ended_at);

  CREATE TABLE noted (
    id INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL,
    node TEXT NOT NULL,
    at INTEGER NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX noted_history ON noted (cluster, at);
  CREATE INDEX noted_age ON noted (at);

  CREATE TABLE gone (
    cluster TEXT NOT NULL,
    uid TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (cluster, uid)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX gone_age ON gone (at);

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    cluster TEXT,
    at INTEGER NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_at ON audit (at);
`;
const VERSIONS = `
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

const pragmaRow = z.object({ value: z.int() });

/** Makes objects of the tables of an older release, in the caller's transaction. */
export type BringOver = (database: DatabaseSync) => void;

/**
 * Opens, or creates, the embedded database at `path` (a file of its owner's alone, or `:memory:`). Throws `StoreError`, with one
 * sentence that names the path and the remedy, when that is impossible or the file is not one this code may write, and `ForeignFileError`
 * when it is in the hands of another user. `bringOver`: only for a process that has the database to itself; others refuse an older one.
 */
export function openDatabase(path: string, bringOver?: BringOver): DatabaseSync {
  const isFile = path !== ':memory:';
  if (isFile) {
    createOwnerOnly(path);
    checkOwnDatabase(path);
  }
  const database = orSqliteStoreError(path, () => new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS }));
  try {
    orSqliteStoreError(path, () => {
      refuseForeign(database, path, bringOver !== undefined);
      if (isFile) makeOwnerOnly(path);
      prepareDatabase(database, bringOver);
    });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepareDatabase(database: DatabaseSync, bringOver: BringOver | undefined): void {
  // With a write-ahead log readers do not wait for a writer. A killed process loses nothing even at NORMAL,
  // but only FULL, which syncs the log with every commit, lets a committed deadline survive a power cut too.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  inTransaction(database, 'IMMEDIATE', () => {
    const version = schemaVersion(database);
    if (version === SCHEMA_VERSION) return;
    database.exec(OBJECTS);
    if (version === OLDER_VERSION) bringOver?.(database);
    else database.exec(LOGS);
    database.exec(VERSIONS);
  });
}

/** Refuses a file that holds another program's tables, or those of another release that are not brought over. */
function refuseForeign(database: DatabaseSync, path: string, bringsOver: boolean): void {
  const empty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
  if (empty) return;
  if (pragma(database, 'application_id') !== APPLICATION_ID) {
    throw new StoreError(
      `The database ${path} cannot be used: it belongs to another program; name another path.`,
    );
  }
  const version = schemaVersion(database);
  if (version === SCHEMA_VERSION || (version === OLDER_VERSION && bringsOver)) return;
  const whose = version > SCHEMA_VERSION ? 'a newer' : 'an older';
  throw new StoreError(
    `The database ${path} cannot be used: ${whose} release wrote it (schema ${version}, this one knows ${SCHEMA_VERSION}); ${remedyOf(version)}, or name another path.`,
  );
}

function remedyOf(version: number): string {
  if (version > SCHEMA_VERSION) return 'upgrade';
  return version === OLDER_VERSION
    ? 'stop that one and start this one on it, which takes it over'
    : 'move it away';
}

const schemaVersion = (database: DatabaseSync): number => pragma(database, 'user_version');

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return pragmaRow.parse(database.prepare(`SELECT ${name} AS value FROM pragma_${name}`).get()).value;
}

/** What is looked at around each commit, by database. */
const checks = new WeakMap<DatabaseSync, () => void>();

/**
 * Has `check` called before and after each commit of the database from now on. When it throws before, nothing is written; after, what
 * was written counts as refused, so that nothing is done on the strength of it.
 */
export const checkCommits = (database: DatabaseSync, check: () => void): void => {
  checks.set(database, check);
};

/**
 * Runs `work` in a transaction and returns its result; rolls back when it throws. `DEFERRED` gives reads one
 * snapshot; `IMMEDIATE` keeps other writers out from the start, so that what was read still holds when written. Within a transaction
 * it is part of that.
 */
export function inTransaction<T>(database: DatabaseSync, kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
  if (database.isTransaction) return work();
  const check = kind === 'IMMEDIATE' ? checks.get(database) : undefined;
  check?.();
  const result = committed(database, kind, work);
  check?.();
  return result;
}

function committed<T>(database: DatabaseSync, kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
  database.exec(`BEGIN ${kind}`);
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // A full disk makes SQLite roll back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** The result of working on the database at `path`, or its failure as a `StoreError`; a `ForeignFileError` stays itself. */
export function orSqliteStoreError<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ForeignFileError) throw error;
    throw sqliteStoreError(error, path);
  }
}

/** What SQLite made of a call, as one sentence that names the file and says what to do. A `StoreError` stays itself. */
function sqliteStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const text = sqliteCode(error) === undefined ? systemErrorText(error) : undefined;
  return new StoreError(text ?? `The database ${path} cannot be used: ${sqliteFault(error)}.`, {
    cause: error,
  });
}
