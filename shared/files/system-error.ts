import { errorMessage } from '#shared/text/error-message.ts';
import { shownLines } from '#shared/text/escape-for-display.ts';

const REMEDIES: Readonly<Record<string, string>> = {
  EACCES: 'give this user permission to it',
  EDQUOT: 'the quota of this user is used up; make room',
  EEXIST: 'something stands in its place; move that away',
  EIO: 'its disk fails; check the disk',
  EISDIR: 'a directory stands in its place; move that away',
  ELOOP: 'it is a link; move that away',
  EMFILE: 'this process has too many files open; raise the limit (ulimit -n)',
  ENOENT: 'it does not exist; create it, or name another path',
  ENOSPC: 'its disk has no space or no inodes left; make room',
  ENOTDIR: 'a file stands in place of a directory above it; move that away',
  ENOTEMPTY: 'a directory stands in its place; move that away',
  EPERM: 'give this user permission to it',
  EROFS: 'its disk is read-only; name another path',
};

/** Remedies of SQLite's primary result codes (sqlite.org/rescode.html). */
const SQLITE_REMEDIES: ReadonlyMap<number, string> = new Map([
  [5, 'another process holds it: stop that one'],
  [8, 'it is read-only: allow this user to write it'],
  [10, 'its disk fails: check the disk and the free space'],
  [11, 'it is damaged: restore a copy, or move it away to start again'],
  [13, 'its disk is full: make room'],
  [14, 'its directory is missing or closed to this user: create it, or name another path'],
  [26, 'it is another kind of file: name another path, or move it away'],
]);
/** SQLite's result code when another process holds a lock. */
export const SQLITE_BUSY = 5;

/** The low byte of an extended result code is the primary one. */
const PRIMARY_CODE_MASK = 0xff;

/** Returns SQLite's primary result code; `undefined`: the error isn't from SQLite. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return undefined;
  return error.errcode & PRIMARY_CODE_MASK;
}

export function sqliteFault(error: unknown): string {
  const remedy = SQLITE_REMEDIES.get(sqliteCode(error) ?? 0);
  return remedy ? `${remedy} (${errorMessage(error)})` : errorMessage(error);
}

/**
 * One sentence with path and remedy for an error of the system or SQLite without a specific message. `undefined`: the
 * error is neither, so it is a bug.
 */
export function systemErrorText(error: unknown): string | undefined {
  const path = pathOf(error);
  if (sqliteCode(error) !== undefined) {
    return `The database${path === undefined ? '' : ` ${path}`} cannot be used: ${sqliteFault(error)}.`;
  }
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) return undefined;
  const { code, syscall } = error;
  const remedy = REMEDIES[String(code)];
  const what = path === undefined ? `The system call ${syscall} failed` : `Cannot ${syscall} ${path}`;
  return remedy === undefined || path === undefined
    ? `${what}: ${error.message}.`
    : `${what} (${code}): ${remedy}.`;
}

const pathOf = (error: unknown): string | undefined =>
  error instanceof Error && 'path' in error && typeof error.path === 'string' ? error.path : undefined;

/** The message of one of these kinds, or {@link systemErrorText}. `undefined`: a bug, whose stack shows more. */
export const operatorText = (
  error: unknown,
  kinds: readonly (new (...given: never) => Error)[],
): string | undefined => {
  const known = kinds.some((kind) => error instanceof kind);
  return known ? (error as Error).message : systemErrorText(error);
};

/** Ends the process as failed, with {@link operatorText} or the stack of a bug after the program's name. */
export function exitWithError(
  program: string,
  error: unknown,
  kinds: Parameters<typeof operatorText>[1],
): never {
  const text = operatorText(error, kinds) ?? (error as Error).stack ?? '';
  process.stderr.write(`${program}: ${shownLines(text)}\n`);
  process.exit(1);
}
