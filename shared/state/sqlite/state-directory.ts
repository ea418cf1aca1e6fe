import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  checkOwnDatabase,
  createOwnerOnly,
  ForeignFileError,
  findOwn,
  findOwnDirectory,
  makeOwnerOnly,
} from '#shared/files/owner-only.ts';
import { SQLITE_BUSY, sqliteCode, sqliteFault } from '#shared/files/system-error.ts';

/** The state directory is unusable. The message names it and the fix. */
export class StateDirectoryError extends Error {
  override readonly name = 'StateDirectoryError';
}

/** Records, history, and leases. */
export const STORE_FILE = 'store.sqlite';
/** Policies, stops, holds, the guard, and the audit. */
export const RULES_FILE = 'rules.sqlite';
const LOCK_FILE = 'lock';
/** Time limit for waiting on a process that only checks the lock. */
const LOCK_TIMEOUT_MS = 100;

export interface StateDirectory {
  readonly path: string;
  file(name: string): string;
  release(): void;
}

/** Fixes for system errors that are different for a directory. */
const REMEDIES: Readonly<Record<string, string>> = {
  EEXIST: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOTDIR: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOSPC: 'its disk is full; make room',
};

/**
 * Takes a directory for this process alone, inaccessible to other users. The lock is an SQLite transaction, which the
 * system ends with the process, however it dies. Throws `StateDirectoryError`, or `ForeignFileError` if another user
 * owns or may write the directory or its lock.
 */
export function takeStateDirectory(given: string): StateDirectory {
  const named = resolve(given);
  let path = named;
  let lock: DatabaseSync;
  try {
    makeDirectory(named);
    path = findOwnDirectory(named) ?? named;
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    lock = openLock(join(path, LOCK_FILE));
  } catch (error) {
    if (error instanceof ForeignFileError) throw error;
    throw unusable(named, error);
  }
  try {
    lock.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (sqliteCode(error) !== SQLITE_BUSY) throw unusable(named, error);
    throw new StateDirectoryError(
      `the state directory ${named} is in use by another Taintward process. Stop that process, or specify another directory with --state-dir DIR`,
    );
  }
  return { path, file: (name) => join(path, name), release: () => lock.close() };
}

function unusable(path: string, error: unknown): StateDirectoryError {
  const { code = '' } = error as NodeJS.ErrnoException;
  const [what, remedy] =
    sqliteCode(error) === undefined
      ? [
          `cannot use the state directory ${path} (${code})`,
          REMEDIES[code] ?? 'make it readable and writable',
        ]
      : [`cannot lock the state directory ${path} by its file "${LOCK_FILE}"`, sqliteFault(error)];
  return new StateDirectoryError(`${what}: ${remedy}, or choose another with --state-dir DIR`);
}

/** Like `mkdir -p`. Node's own never ends in a file system that rejects directories, such as /proc. */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  // Set the mode by umask. A later chmod would follow a link that another user put in the directory's place.
  const umask = process.umask(0o077);
  try {
    mkdirSync(path, 0o700);
  } finally {
    process.umask(umask);
  }
}

function openLock(path: string): DatabaseSync {
  createOwnerOnly(path);
  makeOwnerOnly(path);
  return new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS });
}

/**
 * Reports whether a process of this user has a directory that was only found: as nobody named it, neither it nor its
 * lock may be a link. Throws `ForeignFileError` if another user owns or may write one of them.
 */
export function isInUse(directory: string): boolean {
  const path = join(directory, LOCK_FILE);
  if (findOwn(directory, 'directory') === undefined || findOwn(path, 'file') === undefined) return false;
  let lock: DatabaseSync;
  try {
    checkOwnDatabase(path);
    lock = new DatabaseSync(path, { readOnly: true });
  } catch (error) {
    if (error instanceof ForeignFileError) throw error;
    return false;
  }
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    // A file that is unreadable for another reason is not locked.
    return sqliteCode(error) === SQLITE_BUSY;
  } finally {
    lock.close();
  }
}
