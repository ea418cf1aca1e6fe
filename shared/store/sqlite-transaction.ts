import type { DatabaseSync } from 'node:sqlite';

/**
 * Runs `work` in a transaction and returns its result; rolls back when it throws. `DEFERRED` gives reads one
 * snapshot; `IMMEDIATE` keeps other writers out from the start, so that what was read still holds when written.
 */
export function inTransaction<T>(database: DatabaseSync, kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
  database.exec(`BEGIN ${kind}`);
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // A full disk makes SQLite roll back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
