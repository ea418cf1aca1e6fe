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

/** The version of the tables below, kept in each file as `user_version`. */
const SCHEMA_VERSION = 13;
const BUSY_TIMEOUT_MS = 5_000;

interface Layout {
  /** Marks the file as Taintward's, so that Taintward never writes to another program's database. */
  readonly applicationId: number;
  readonly pragmas: string;
  readonly tables: string;
}

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

/** History and audit have no TTL: the process that purges them knows their retention. */
const RECORDS: Layout = {
  /** "TntW" */
  applicationId: 0x546e7457,
  // With a write-ahead log, readers do not wait for a writer. A killed process loses nothing even at NORMAL. Only
  // FULL, which syncs the log with every commit, preserves a committed deadline after a power failure too.
  pragmas: 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;',
  tables: `${OBJECTS}
  CREATE TABLE known_rules (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    revision INTEGER NOT NULL
  ) STRICT;

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
`,
};

const RULES: Layout = {
  /** "TntR" */
  applicationId: 0x546e7452,
  // Committed rules are in the file itself, with no log to lose. EXTRA also syncs the directory after the removal of
  // the journal, which is the commit: after a power failure, a journal that is back would restore older rules.
  pragmas: 'PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA;',
  tables: `${OBJECTS}
  CREATE TABLE identity (id TEXT NOT NULL) STRICT;
  INSERT INTO identity (id) VALUES (lower(hex(randomblob(16))));

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    cluster TEXT,
    at INTEGER NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_at ON audit (at);
`,
};

const pragmaRow = z.object({ value: z.int() });

/** Opens, or creates, the database of records as {@link open} does. */
export const openDatabase = (path: string): DatabaseSync => open(path, RECORDS);

/** Opens, or creates, the database of rules as {@link open} does. */
export const openRulesDatabase = (path: string): DatabaseSync => open(path, RULES);

/**
 * Opens, or creates, the database at `path` (its owner's alone, or `:memory:`). Throws `StoreError`, which names path
 * and fix, and `ForeignFileError` if another user controls the file.
 */
function open(path: string, layout: Layout): DatabaseSync {
  const isFile = path !== ':memory:';
  if (isFile) {
    createOwnerOnly(path);
    checkOwnDatabase(path);
  }
  const database = orSqliteStoreError(path, () => new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS }));
  try {
    orSqliteStoreError(path, () => {
      refuseForeign(database, path, layout);
      if (isFile) makeOwnerOnly(path);
      prepareDatabase(database, layout);
      if (layout === RULES) {
        // An index with a lost page hides rules, and SQLite reports no error.
        const { integrity_check: found } = database.prepare('PRAGMA integrity_check(1)').get() ?? {};
        if (found !== 'ok')
          throw new StoreError(
            `The database ${path} is damaged (${found}): restore it from a backup, or move it away.`,
          );
      }
    });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepareDatabase(database: DatabaseSync, { pragmas, tables, applicationId }: Layout): void {
  database.exec(pragmas);
  // A command also reads while another process writes, which may take long.
  if (schemaVersion(database) === SCHEMA_VERSION) return;
  inTransaction(database, 'IMMEDIATE', () => {
    if (schemaVersion(database) === SCHEMA_VERSION) return;
    database.exec(tables);
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${SCHEMA_VERSION};`);
  });
}

/** Rejects a file with another program's tables, or with those of another release. */
function refuseForeign(database: DatabaseSync, path: string, { applicationId }: Layout): void {
  const empty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
  if (empty) return;
  if (pragma(database, 'application_id') !== applicationId) {
    throw new StoreError(
      `The database ${path} cannot be used: it belongs to another program; name another path.`,
    );
  }
  const version = schemaVersion(database);
  if (version === SCHEMA_VERSION) return;
  const [whose, remedy] =
    version > SCHEMA_VERSION
      ? ['a newer', 'upgrade']
      : ['an older', 'move it away and set policies, stops and holds again'];
  throw new StoreError(
    `The database ${path} cannot be used: ${whose} release wrote it (schema ${version}, this one knows ${SCHEMA_VERSION}); ${remedy}, or name another path.`,
  );
}

const schemaVersion = (database: DatabaseSync): number => pragma(database, 'user_version');

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return pragmaRow.parse(database.prepare(`SELECT ${name} AS value FROM pragma_${name}`).get()).value;
}

const checks = new WeakMap<DatabaseSync, () => void>();

/**
 * Calls `check` before and after each transaction. Thrown before, nothing is written; thrown after, the write counts as
 * failed, so that no action relies on it.
 */
export const checkTransactions = (database: DatabaseSync, check: () => void): void => {
  checks.set(database, check);
};

/**
 * Runs `work` in a transaction; rolls back when it throws. `DEFERRED` gives reads one snapshot; `IMMEDIATE` excludes
 * other writers, so that reads are valid when the result is written. Nested, it joins the outer transaction.
 */
export function inTransaction<T>(database: DatabaseSync, kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
  if (database.isTransaction) return work();
  const check = checks.get(database);
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
    // On a full disk, SQLite itself rolls back.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Throws failures as `StoreError`, but `ForeignFileError` unchanged. */
export function orSqliteStoreError<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ForeignFileError) throw error;
    throw sqliteStoreError(error, path);
  }
}

function sqliteStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const text = sqliteCode(error) === undefined ? systemErrorText(error) : undefined;
  return new StoreError(text ?? `The database ${path} cannot be used: ${sqliteFault(error)}.`, {
    cause: error,
  });
}
