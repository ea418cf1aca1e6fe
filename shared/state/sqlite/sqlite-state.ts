import type { DatabaseSync } from 'node:sqlite';
import { ConfigMapQueue } from '#shared/state/objects/config-map-queue.ts';
import { ObjectLeases, releasedLease } from '#shared/state/objects/object-leases.ts';
import { ObjectPermits } from '#shared/state/objects/object-permits.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import { StoreError } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { checkCommits, openDatabase } from './sqlite-database.ts';
import { SqliteHistory } from './sqlite-history.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';
import { SqliteRulesStore } from './sqlite-rules-store.ts';
import { SqliteStore } from './sqlite-store.ts';
import { StateFiles, StateLostError } from './state-files.ts';

export interface SqliteStateOptions {
  /** The database: a file for this process alone, apart from operators' commands. */
  readonly path: string;
  readonly historyDays: number;
  readonly clock: Clock;
  readonly log: Log;
  /** The database was deleted, replaced or cut off in use: the process must end immediately and close nothing. */
  lost(error: StateLostError): void;
}

/**
 * Opens the state; if operators' rules are missing, all clusters are stopped. Throws `StoreError` or
 * `ForeignFileError`.
 */
export function sqliteState({ path, historyDays, clock, log, lost }: SqliteStateOptions): ServiceState {
  const store = new SqliteStore({ path, database: openDatabase(path) });
  const { database } = store;
  const files = new StateFiles(database, path);
  checkCommits(database, () => {
    try {
      files.check();
    } catch (error) {
      if (!(error instanceof StateLostError)) throw error;
      log.error('state.lost', { error });
      lost(error);
      throw error;
    }
  });
  releaseLeases(database);
  const rulesStore = new SqliteRulesStore({ database });
  const stop = rulesStore.recover(clock.now());
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
    close: () => store.close(),
  };
}

export const sqliteRequests = (database: DatabaseSync): ConfigMapQueue =>
  new ConfigMapQueue(new SqliteObjects(database, KINDS.config), 'asked');

export const sqliteLeases = (database: DatabaseSync): ObjectLeases =>
  new ObjectLeases(new SqliteObjects(database, KINDS.lease));

export const sqlitePermits = (database: DatabaseSync): ObjectPermits =>
  new ObjectPermits(new SqliteObjects(database, KINDS.config));

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
