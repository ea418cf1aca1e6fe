import { existsSync, renameSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { createOwnerOnly, makeOwnerOnly } from '#shared/files/owner-only.ts';
import { sqliteCode } from '#shared/files/system-error.ts';
import type { Change } from './history.ts';
import { parseJson, stringifyJson } from './json.ts';
import { objectSchemas, RESOURCE_NAMES } from './kinds.ts';
import type { ClusterState } from './store.ts';

/** The version of the file's format. Files of another format count as damaged. */
const FORMAT = 2;

const SCHEMA = `
  CREATE TABLE objects (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (resource, namespace, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE latest (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL) STRICT;
  PRAGMA user_version = ${FORMAT};
`;

/** SQLite's result codes for a file that is damaged, not a database, or without our tables. */
const DAMAGE_CODES: readonly number[] = [11, 26, 1];

/** The file that keeps the simulated cluster's objects after its process ends. */
export interface StateFile {
  /** The stored state; `undefined`: nothing is stored yet. */
  readonly state: ClusterState | undefined;
  /** Keeps a change; once it returns, the change survives the process's death. Throws when it cannot be written. */
  save(change: Change): void;
  close(): void;
}

/** Receives a warning when a damaged file is moved aside. */
export interface StateFileLog {
  warn(
    event: 'simulated-cluster.state-damaged',
    fields: { readonly file: string; readonly error: unknown },
  ): void;
}

/**
 * Opens the file, or creates it, accessible to its owner only. A damaged file is moved to `<path>.damaged`, with a warning, and a
 * new one is created. Throws when the file can be neither opened nor created, and `ForeignFileError` when another user owns it;
 * errors of SQLite name it as `path`.
 */
export function openStateFile(path: string, log?: StateFileLog): StateFile {
  try {
    return open(path);
  } catch (error) {
    if (!isDamage(error)) throw error;
    log?.warn('simulated-cluster.state-damaged', { file: path, error });
    // The write-ahead log belongs to the damaged file: applied to a new file, it would damage that too.
    for (const file of [path, `${path}-wal`]) if (existsSync(file)) renameSync(file, `${file}.damaged`);
    return open(path);
  }
}

/** Runs work on a database; adds the path to an error of SQLite. */
export function namingDatabase<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (sqliteCode(error) !== undefined) throw Object.assign(error as Error, { path });
    throw error;
  }
}

/** The file is intact, but its content is invalid. */
class UnreadableStateError extends Error {
  override readonly name = 'UnreadableStateError';
}

function open(path: string): StateFile {
  createOwnerOnly(path);
  makeOwnerOnly(path);
  const database = namingDatabase(path, () => new DatabaseSync(path));
  try {
    const state = namingDatabase(path, () => {
      prepare(database);
      return read(database);
    });
    const save = writer(database);
    return {
      state,
      save: (change) => namingDatabase(path, () => save(change)),
      close: () => database.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepare(database: DatabaseSync): void {
  // A killed process loses nothing. A power failure may lose the last changes but not the file, which is acceptable in a
  // simulation.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  const { quick_check } = checkRow.parse(database.prepare('PRAGMA quick_check(1)').get());
  if (quick_check !== 'ok') throw new UnreadableStateError(quick_check);
  const { user_version } = formatRow.parse(database.prepare('PRAGMA user_version').get());
  if (user_version === FORMAT) return;
  if (user_version !== 0) throw new UnreadableStateError(`has format ${user_version}, not ${FORMAT}`);
  inTransaction(database, () => database.exec(SCHEMA));
}

function read(database: DatabaseSync): ClusterState | undefined {
  const latest = database.prepare('SELECT version FROM latest').get();
  if (latest === undefined) return undefined;
  const { version } = latestRow.parse(latest);
  const objects = database
    .prepare('SELECT resource, json FROM objects')
    .all()
    .map((row) => {
      const { resource, json } = objectRow.parse(row);
      return { resource, object: objectSchemas[resource].parse(parseJson(json)) };
    });
  return { version, objects };
}

function writer(database: DatabaseSync): (change: Change) => void {
  const put = database.prepare(
    'INSERT OR REPLACE INTO objects (resource, namespace, name, json) VALUES (?, ?, ?, ?)',
  );
  const remove = database.prepare('DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?');
  const count = database.prepare('INSERT OR REPLACE INTO latest (one, version) VALUES (1, ?)');
  return ({ version, type, resource, object }) => {
    const { namespace = '', name } = object.metadata;
    inTransaction(database, () => {
      if (type === 'DELETED') remove.run(resource, namespace, name);
      else put.run(resource, namespace, name, stringifyJson(object));
      count.run(version);
    });
  };
}

/** Runs `work` as one transaction, which is rolled back if it throws. */
function inTransaction(database: DatabaseSync, work: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    work();
    database.exec('COMMIT');
  } catch (error) {
    // On a full disk, SQLite has already rolled back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

const checkRow = z.object({ quick_check: z.string() });
const formatRow = z.object({ user_version: z.int() });
const latestRow = z.object({ version: z.int().positive() });
const objectRow = z.object({ resource: z.enum(RESOURCE_NAMES), json: z.string() });

const isDamage = (error: unknown): boolean =>
  error instanceof UnreadableStateError ||
  error instanceof z.ZodError ||
  error instanceof SyntaxError ||
  DAMAGE_CODES.includes(sqliteCode(error) ?? 0);
