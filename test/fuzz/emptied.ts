import type { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';

const TABLES = ['objects', 'ended', 'noted', 'gone', 'audit'];

/** Returns the same store with all rows deleted: creating a store takes longer than most inputs. */
export function emptied<Store extends SqliteStore>(store: Store): Store {
  store.database.exec(TABLES.map((table) => `DELETE FROM ${table};`).join(''));
  return store;
}
