import { chmodSync, closeSync, existsSync, fchmodSync, openSync } from 'node:fs';

const OWNER_ONLY = 0o600;
/** What SQLite puts beside a database. It gives new ones the rights of the database. */
const BESIDE_A_DATABASE = ['', '-wal', '-shm', '-journal'];

/**
 * Makes an empty file, of which SQLite makes a database, that nobody but its owner can read or write, whatever the umask
 * says. Does nothing where there is one, or where none can be made: whoever opens it finds out why.
 */
export function createOwnerOnly(path: string): void {
  let file: number;
  try {
    file = openSync(path, 'wx', OWNER_ONLY);
  } catch {
    return;
  }
  try {
    fchmodSync(file, OWNER_ONLY);
  } finally {
    closeSync(file);
  }
}

/** Takes the rights of all others from a database that is there. Throws the system's error when it is not ours. */
export function makeOwnerOnly(database: string): void {
  for (const part of BESIDE_A_DATABASE) {
    const path = `${database}${part}`;
    if (existsSync(path)) chmodSync(path, OWNER_ONLY);
  }
}
