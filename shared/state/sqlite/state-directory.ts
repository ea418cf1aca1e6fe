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

/** The state directory cannot be used; the message names it and the fix. */
export class StateDirectoryError extends Error {
  override readonly name = 'StateDirectoryError';
}

/** The store's database in it. */
export const STORE_FILE = 'store.sqlite';
const LOCK_FILE = 'lock';
/** For as long, whoever only looks whether it is taken may be in the way. */
const LOCK_TIMEOUT_MS = 100;

export interface StateDirectory {
  readonly path: string;
  /** The path of something in it. */
  file(name: string): string;
  release(): void;
}

/** Remedies of the system's errors that differ for a directory. */
const REMEDIES: Readonly<Record<string, string>> = {
  EEXIST: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOTDIR: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOSPC: 'its disk is full; make room',
};

/**
 * Takes a state directory for this process alone, made if need be: then nobody but this user can look into it. The lock
 * is an SQLite transaction, which the system ends with the process however it dies. Throws `StateDirectoryError`, or `ForeignFileError`
 * when somebody else owns or may write the directory or its lock.
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

/** As `mkdir -p`. That of Node never ends in a file system that takes no directories, such as /proc. */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  // By umask, not by a chmod after it: that would follow a link that somebody put in its place.
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
 * Whether a process of this user has taken a directory that was only found: nobody named it, so neither it nor its lock may be a link. Throws
 * `ForeignFileError` when there is one that somebody else owns or may write.
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
    // A file that cannot be read for another reason is held by nobody.
    return sqliteCode(error) === SQLITE_BUSY;
  } finally {
    lock.close();
  }
}
