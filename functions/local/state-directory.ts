import { accessSync, chmodSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createOwnerOnly, makeOwnerOnly } from '#shared/files/owner-only.ts';

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

/** The system's errors that have a remedy of their own. */
const REMEDIES: Readonly<Record<string, string>> = {
  EEXIST: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOTDIR: 'a file stands in its place, or in that of a directory above it; move it away',
  ENOSPC: 'its disk is full; make room',
};

/**
 * Takes a state directory for this process alone, made if need be: then nobody but this user can look into it. The lock
 * is an SQLite transaction, which the system ends with the process however it dies. Throws `StateDirectoryError`.
 */
export function takeStateDirectory(given: string): StateDirectory {
  const path = resolve(given);
  let lock: DatabaseSync;
  try {
    makeDirectory(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    lock = openLock(join(path, LOCK_FILE));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const remedy = REMEDIES[code] ?? 'make it readable and writable';
    throw new StateDirectoryError(
      `cannot use the state directory ${path} (${code}): ${remedy}, or choose another with --state DIR`,
    );
  }
  try {
    lock.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  } catch {
    lock.close();
    throw new StateDirectoryError(
      `the state directory ${path} is in use by another taintward, or its file "lock" is damaged: stop that one, or choose another with --state DIR`,
    );
  }
  return { path, file: (name) => join(path, name), release: () => lock.close() };
}

/** As `mkdir -p`. That of Node never ends in a file system that takes no directories, such as /proc. */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  mkdirSync(path);
  chmodSync(path, 0o700);
}

function openLock(path: string): DatabaseSync {
  createOwnerOnly(path);
  makeOwnerOnly(path);
  return new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS });
}

/** Whether a process has taken a directory. */
export function isInUse(directory: string): boolean {
  let lock: DatabaseSync;
  try {
    lock = new DatabaseSync(join(directory, LOCK_FILE), { readOnly: true });
  } catch {
    return false;
  }
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch {
    return true;
  } finally {
    lock.close();
  }
}
