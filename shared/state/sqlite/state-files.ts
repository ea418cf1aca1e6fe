import { existsSync, mkdirSync, rmSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { createOwnerOnly } from '#shared/files/owner-only.ts';
import { StoreError } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/** Suffix of SQLite's write-ahead log. Only the log has the latest commits. */
const LOG = '-wal';

/** An open database's files were deleted, replaced or cut off. The message reports whether they were restored. */
export class StateLostError extends StoreError {
  override readonly name = 'StateLostError';
}

/**
 * Watches open databases' files: SQLite continues to use deleted ones, whose content is lost with the process. Returns a
 * check that throws `StateLostError` if files changed, with deleted ones restored. The process must then end without
 * closing the databases: SQLite would modify other processes' files.
 */
export function watchFiles(databases: readonly DatabaseSync[]): () => void {
  let known = filesOf(databases);
  return () => {
    const before = known;
    known = filesOf(databases);
    for (const [path, file] of before) {
      const now = known.get(path);
      if (now === undefined) throw lost(path, `deleted while it was in use; ${restored(databases)}`);
      if (now.ino !== file.ino || now.dev !== file.dev) throw lost(path, 'replaced while it was in use');
      if (path.endsWith(LOG) && now.size < file.size) throw lost(path, 'cut off while it was in use');
    }
  };
}

function filesOf(databases: readonly DatabaseSync[]): ReadonlyMap<string, Stats> {
  const found = new Map<string, Stats>();
  for (const path of databases.flatMap(pathsOf)) {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file) found.set(path, file);
  }
  return found;
}

function restored(databases: readonly DatabaseSync[]): string {
  try {
    databases.forEach(restore);
    return 'its content is restored';
  } catch (error) {
    return `its content could not be restored (${errorMessage(error)})`;
  }
}

function pathsOf(database: DatabaseSync): readonly string[] {
  const path = database.location();
  return path === null ? [] : [path, `${path}${LOG}`];
}

function restore(database: DatabaseSync): void {
  const path = database.location() ?? '';
  if (existsSync(path)) {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return;
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // No other process has a database of that name, so a remaining log or index belongs to none.
  for (const part of [LOG, '-shm', '-journal']) rmSync(`${path}${part}`, { force: true });
  createOwnerOnly(path);
  database.prepare('VACUUM INTO ?').run(path);
}

const lost = (path: string, what: string): StateLostError =>
  new StateLostError(`${path} was ${what}: start it again`);
