import { accessSync, constants, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** The state directory cannot be used; the message names it and the fix. */
export class StateDirectoryError extends Error {
  override readonly name = 'StateDirectoryError';
}

export interface StateDirectory {
  readonly path: string;
  /** The path of something in it. */
  file(name: string): string;
  release(): void;
}

/**
 * Takes a state directory for this process alone, made if need be. The lock is an SQLite transaction, which the
 * system ends with the process however it dies. Throws `StateDirectoryError`.
 */
export function takeStateDirectory(given: string): StateDirectory {
  const path = resolve(given);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StateDirectoryError(
      `cannot use the state directory ${path} (${code}): make it readable and writable, or choose another with --state DIR`,
    );
  }
  const lock = new DatabaseSync(join(path, 'lock'));
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
