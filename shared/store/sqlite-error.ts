import * as z from 'zod';
import { StoreError } from './store.ts';

/** SQLite's primary result codes that have a remedy of their own (sqlite.org/rescode.html). */
const REMEDIES: ReadonlyMap<number, string> = new Map([
  [5, 'another process holds it: stop that one'],
  [8, 'it is read-only: give this user the right to write it'],
  [10, 'its disk fails: check the disk and the free space'],
  [11, 'it is damaged: restore a copy, or move it away to start anew'],
  [13, 'its disk is full: make room'],
  [14, 'its directory is missing or closed to this user: create it, or name another path'],
  [26, 'it is another kind of file: name another path, or move it away'],
]);

/** The low byte of an extended result code is the primary one. */
const PRIMARY_CODE_MASK = 0xff;

const sqliteError = z.object({ errcode: z.int() });

/** The result of working on the database at `path`, or its failure as a `StoreError`. */
export function orSqliteStoreError<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw sqliteStoreError(error, path);
  }
}

/** What SQLite made of a call, as one sentence that names the file and says what to do. A `StoreError` stays itself. */
function sqliteStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const found = sqliteError.safeParse(error);
  const remedy = found.success ? REMEDIES.get(found.data.errcode & PRIMARY_CODE_MASK) : undefined;
  const text = remedy ? `${remedy} (${message})` : message;
  return new StoreError(`The database ${path} cannot be used: ${text}.`, { cause: error });
}
