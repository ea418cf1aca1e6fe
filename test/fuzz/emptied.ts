import type { DatabaseSync } from 'node:sqlite';
import type { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';

const TABLES = ['objects', 'ended', 'noted', 'gone'];

/** Returns the same store with all rows deleted: creating a store takes longer than most inputs. */
export function emptied<Store extends SqliteStore>(store: Store): Store {
  store.database.exec(TABLES.map((table) => `DELETE FROM ${table};`).join(''));
  return store;
}

/** Deletes all rules and the audit. */
export const emptyRules = (rules: DatabaseSync): void =>
  rules.exec('DELETE FROM objects; DELETE FROM audit;');
