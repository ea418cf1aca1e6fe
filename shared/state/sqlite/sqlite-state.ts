import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { ConfigMapQueue } from '#shared/state/objects/config-map-queue.ts';
import { ObjectLeases, releasedLease } from '#shared/state/objects/object-leases.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import { StoreError } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { checkTransactions, openRulesDatabase } from './sqlite-database.ts';
import { SqliteHistory } from './sqlite-history.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';
import { SqliteRulesStore } from './sqlite-rules-store.ts';
import { SqliteStore } from './sqlite-store.ts';
import { RULES_FILE, STORE_FILE } from './state-directory.ts';
import { StateLostError, watchFiles } from './state-files.ts';

export interface SqliteStateOptions {
  /** The state directory: for this process alone, apart from operators' commands. */
  readonly directory: string;
  readonly historyDays: number;
  readonly clock: Clock;
  readonly log: Log;
  /** A database was deleted, replaced or cut off in use: the process must end immediately and close nothing. */
  lost(error: StateLostError): void;
}

/**
 * Opens the records and the rules of a state directory. The rules have a database of their own, so that no damage of
 * the records' log makes them older. Throws `StoreError` or `ForeignFileError`.
 */
export function openState(directory: string) {
  const store = new SqliteStore({ path: join(directory, STORE_FILE) });
  const rules = openRulesDatabase(join(directory, RULES_FILE));
  return { store, rules, rulesStore: new SqliteRulesStore({ database: rules, records: store.database }) };
}

/**
 * Opens the state; if operators' rules are missing, all clusters are stopped. Throws `StoreError` or
 * `ForeignFileError`.
 */
export function sqliteState({ directory, historyDays, clock, log, lost }: SqliteStateOptions): ServiceState {
  const { store, rules, rulesStore } = openState(directory);
  const { database } = store;
  const checkFiles = watchFiles([database, rules]);
  const check = () => {
    try {
      checkFiles();
    } catch (error) {
      if (!(error instanceof StateLostError)) throw error;
      log.error('state.lost', { error });
      lost(error);
      throw error;
    }
  };
  checkTransactions(database, check);
  checkTransactions(rules, check);
  releaseLeases(database);
  const stop = rulesStore.stopIfLost(clock.now());
  if (stop) log.error('rules.outdated', { error: stop.reason });
  return {
    store,
    leases: sqliteLeases(database),
    rulesStore,
    permits: sqlitePermits(database),
    history: new SqliteHistory({ database }),
    requests: () => sqliteRequests(database).take(),
    async purge(now) {
      await store.purge(now, historyDays);
      rulesStore.purge(now, historyDays);
    },
    close() {
      rulesStore.close();
      store.close();
    },
  };
}

export const sqliteRequests = (database: DatabaseSync): ConfigMapQueue =>
  new ConfigMapQueue(new SqliteObjects(database, KINDS.config), 'asked');

export const sqliteLeases = (database: DatabaseSync): ObjectLeases =>
  new ObjectLeases(new SqliteObjects(database, KINDS.lease));

export const sqlitePermits = (database: DatabaseSync): Permits =>
  objectPermits(new SqliteObjects(database, KINDS.config));

/** This process has the database to itself, so every earlier holder is dead. */
function releaseLeases(database: DatabaseSync): void {
  const objects = new SqliteObjects(database, KINDS.lease);
  for (const object of objects.all()) {
    try {
      const free = releasedLease(object);
      if (free) objects.write(free);
    } catch (error) {
      // An unreadable lease is reported to the relay that needs it.
      if (!(error instanceof StoreError)) throw error;
    }
  }
}
