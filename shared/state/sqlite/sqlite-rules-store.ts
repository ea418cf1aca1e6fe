import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { rulesName } from '#shared/state/objects/eviction-rules.ts';
import {
  type AuditLog,
  fleetStopIn,
  ObjectRulesStore,
  withFleetStop,
} from '#shared/state/objects/object-rules-store.ts';
import { fleetStopEntry } from '#shared/state/operator-controls.ts';
import type {
  AuditEntry,
  AuditQuery,
  Change,
  FileRulesStore,
  StoredRules,
} from '#shared/state/rules-store.ts';
import { HISTORY_DAYS, historyBefore, parseStored, parseStoredText } from '#shared/state/stored.ts';
import { auditSchema } from '#shared/state/stored-rules.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { RulesRevision } from './rules-revision.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';

/** The actor when the service stops all clusters because rules may be missing. Users are named `user@host`. */
const BY_ITSELF = 'taintward';

const jsonRow = z.object({ json: z.string() });

/** Another process may write to the database, too. Every method rejects with `StoreError`. */
export class SqliteRulesStore extends ObjectRulesStore {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #objects: SqliteObjects;
  readonly #audit: SqliteAudit;
  readonly #revision: RulesRevision;

  /** `database`: the store's own, as `openDatabase` opened it. `newId`: creates the database's ID. */
  constructor({ database, newId }: { readonly database: DatabaseSync; readonly newId?: () => string }) {
    const objects = new SqliteObjects(database, KINDS.rules);
    const audit = new SqliteAudit(database, objects);
    super({ objects, audit });
    this.#database = database;
    this.#path = database.location() ?? ':memory:';
    this.#objects = objects;
    this.#audit = audit;
    this.#revision = new RulesRevision(database, newId);
  }

  /**
   * Stops all clusters, until an operator resumes, if rules are missing from the database: a missing one may have
   * forbidden evictions. Call this before any other read. Throws `StoreError`, or `ForeignFileError`.
   */
  recover(now: EpochMs): Stop | undefined {
    return orSqliteStoreError(this.#path, () => {
      if (this.#revision.lost() === undefined) this.#revision.begin();
      else if (this.#stopForLoss(now)) this.#revision.replaceNote();
      const stop = fleetStopIn(this.#objects.read(rulesName(undefined)));
      return stop?.actor === BY_ITSELF ? stop : undefined;
    });
  }

  /** Stops all clusters. `false`: another process did so meanwhile. */
  #stopForLoss(now: EpochMs): boolean {
    return inTransaction(this.#database, 'IMMEDIATE', () => {
      const why = this.#revision.lost();
      if (why === undefined) return false;
      this.#revision.renew();
      const stop: Stop = { scope: 'fleet', actor: BY_ITSELF, at: now, reason: why };
      this.#objects.write(withFleetStop(this.#objects.read(rulesName(undefined)), stop));
      this.#audit.add(fleetStopEntry(stop));
      return true;
    });
  }

  /** Starts both reads before anything is awaited, so that one transaction covers them. */
  override async read(cluster: ClusterName): Promise<StoredRules> {
    return orSqliteStoreError(this.#path, () =>
      inTransaction(this.#database, 'DEFERRED', () => super.read(cluster)),
    );
  }

  override changeOrders(...change: Parameters<FileRulesStore['changeOrders']>): Promise<Change> {
    return this.#noted(super.changeOrders(...change));
  }

  override noteFile(...change: Parameters<FileRulesStore['noteFile']>): Promise<Change> {
    return this.#noted(super.noteFile(...change));
  }

  override changeFleetStop(...change: Parameters<FileRulesStore['changeFleetStop']>): Promise<Change> {
    return this.#noted(super.changeFleetStop(...change));
  }

  /** Removes audit entries that are older than `historyDays`, as TTL does in DynamoDB. Throws `StoreError`. */
  purge(now: EpochMs, historyDays = HISTORY_DAYS): void {
    this.#audit.purge(historyBefore(now, historyDays));
  }

  async #noted(changing: Promise<Change>): Promise<Change> {
    const result = await changing;
    if (result === 'changed') this.#revision.note();
    return result;
  }
}

/** The audit as a log beside the objects, so that only its retention limits it, not its size. */
class SqliteAudit implements AuditLog {
  readonly #objects: SqliteObjects;
  readonly #path: string;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(database: DatabaseSync, objects: SqliteObjects) {
    this.#objects = objects;
    this.#path = database.location() ?? ':memory:';
    this.#statements = prepareStatements(database);
  }

  noting(entry: AuditEntry): Objects {
    return this.#objects.beside(() => this.add(entry));
  }

  async entries({ cluster, from, to }: AuditQuery): Promise<readonly AuditEntry[]> {
    const rows = this.#run(() => this.#statements.between.all({ cluster: cluster ?? null, from, to }));
    const what = 'entry of the audit';
    return rows.map((row) => parseStoredText(auditSchema, parseStored(jsonRow, row, what).json, what));
  }

  add(entry: AuditEntry): void {
    const { cluster, at } = entry;
    this.#run(() => this.#statements.add.run({ cluster: cluster ?? null, at, json: JSON.stringify(entry) }));
  }

  purge(before: EpochMs): void {
    this.#run(() => this.#statements.purge.run({ before }));
  }

  #run<T>(work: () => T): T {
    return orSqliteStoreError(this.#path, work);
  }
}

function prepareStatements(database: DatabaseSync) {
  return {
    add: database.prepare('INSERT INTO audit (cluster, at, json) VALUES (:cluster, :at, :json)'),
    between: database.prepare(`
      SELECT json FROM audit
      WHERE at >= :from AND at < :to AND (:cluster IS NULL OR cluster IS NULL OR cluster = :cluster)
      ORDER BY at DESC, id DESC`),
    purge: database.prepare('DELETE FROM audit WHERE at <= :before'),
  };
}
