import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

const OWNER_ONLY = 0o600;
/** Permissions of a file's group and of all other users. */
const OF_OTHERS = 0o077;
const WRITE_BY_OTHERS = 0o022;
/** Suffixes of the files that SQLite puts beside a database. SQLite gives new ones the permissions of the database. */
const BESIDE_A_DATABASE = ['', '-wal', '-shm', '-journal'];
/** Opens a file without following a link, and without waiting for the other end of a pipe. */
const READ_ITSELF = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Another user owns a file or directory, or may write it, or something else is in its place. The message is one
 * sentence that names the path and the fix.
 */
export class ForeignFileError extends Error {
  override readonly name = 'ForeignFileError';
}

const IS_OF_KIND = { directory: 'isDirectory', file: 'isFile', socket: 'isSocket' } as const;
export type FileKind = keyof typeof IS_OF_KIND;

/** Returns the caller's user ID; `undefined` on platforms without them, where nothing is checked. */
const callerUid = (): number | undefined => process.geteuid?.();

/**
 * Without following links; `undefined`: no file. Throws `ForeignFileError` unless it is of this kind, belongs to the
 * caller, and no other user may write it.
 */
export function findOwn(path: string, kind: FileKind, uid = callerUid()): Stats | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined) refuseForeign(path, kind, found, uid);
  return found;
}

/**
 * Absolute and without links; a link counts if the caller created it. `undefined`: there is none. Throws
 * `ForeignFileError` as {@link findOwn}.
 */
export function findOwnDirectory(given: string, uid = callerUid()): string | undefined {
  const link = lstatSync(given, { throwIfNoEntry: false });
  const found = link?.isSymbolicLink() ? statSync(given, { throwIfNoEntry: false }) : link;
  if (link === undefined || found === undefined) return undefined;
  const path = realpathSync(given);
  if (link.isSymbolicLink() && uid !== undefined && link.uid !== uid)
    throw new ForeignFileError(`${given} is a link of another user (${link.uid}): name ${path} itself`);
  refuseForeign(path, 'directory', found, uid);
  return path;
}

function refuseForeign(path: string, kind: FileKind, found: Stats, uid: number | undefined): void {
  if (uid === undefined) return;
  if (found.isSymbolicLink()) throw new ForeignFileError(`${path} is a link: move it away`);
  if (!found[IS_OF_KIND[kind]]()) throw new ForeignFileError(`${path} is no ${kind}: move it away`);
  if (found.uid !== uid) {
    throw new ForeignFileError(
      `${path} belongs to another user (${found.uid}, not ${uid}): run this as that user, or move it away`,
    );
  }
  if ((found.mode & WRITE_BY_OTHERS) !== 0) {
    const mode = (found.mode & 0o777).toString(8);
    throw new ForeignFileError(
      `${path} may be written by other users (mode ${mode}): check its content, then run chmod go-w ${path}`,
    );
  }
}

/** Returns a file's text; `undefined`: there is none. Throws `ForeignFileError` for a file of another user. */
export function readOwn(path: string): string | undefined {
  if (findOwn(path, 'file') === undefined) return undefined;
  const file = openSync(path, READ_ITSELF);
  try {
    // Another file may have replaced it since.
    refuseForeign(path, 'file', fstatSync(file), callerUid());
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/**
 * Only the owner can read the file, and it is replaced completely or not at all, even if the machine stops. Throws
 * `ForeignFileError` if the existing file is another user's.
 */
export function replaceOwn(path: string, text: string): void {
  findOwn(path, 'file');
  const unfinished = `${path}.new`;
  // Remove a file that a killed process left, or a link that leads elsewhere.
  rmSync(unfinished, { force: true });
  try {
    const file = openSync(unfinished, 'wx', OWNER_ONLY);
    try {
      fchmodSync(file, OWNER_ONLY);
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  syncDirectory(dirname(path));
}

/** Makes a rename durable. On platforms where directories can't be opened, the system does that. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const directory = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/**
 * An empty file becomes an SQLite database, its owner's alone whatever the umask is. Nothing if it exists or can't be
 * created: opening it shows the reason.
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

/** Throws `ForeignFileError` if another user controls a file of the database. SQLite itself follows links. */
export function checkOwnDatabase(database: string): void {
  for (const part of BESIDE_A_DATABASE) findOwn(`${database}${part}`, 'file');
}

/**
 * Removes other users' permissions. Throws `ForeignFileError`, and the system's error. Uses the path: closing a
 * descriptor of its own would end SQLite's locks on the file.
 */
export function makeOwnerOnly(database: string): void {
  for (const part of BESIDE_A_DATABASE) {
    const path = `${database}${part}`;
    const found = findOwn(path, 'file');
    if (found && (found.mode & OF_OTHERS) !== 0) chmodSync(path, OWNER_ONLY);
  }
}
