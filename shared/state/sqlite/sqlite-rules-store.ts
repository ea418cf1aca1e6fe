import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { type KeptRules, rulesName } from '#shared/state/objects/eviction-rules.ts';
import { fleetStopIn, ObjectRulesStore, withFleetStop } from '#shared/state/objects/object-rules-store.ts';
import type { AuditEntry, AuditQuery, Change, StoredRules } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { HISTORY_DAYS, historyBefore, parseStored, parseStoredText } from '#shared/state/stored.ts';
import { auditSchema } from '#shared/state/stored-rules.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { KnownRules } from './known-rules.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';

/** The actor when the service stops all clusters because rules may be missing. Users are named `user@host`. */
const BY_ITSELF = 'taintward';

const jsonRow = z.object({ json: z.string() });

export interface SqliteRulesStoreOptions {
  /** The rules' own, as `openRulesDatabase` opened it. */
  readonly database: DatabaseSync;
  /** The records' database, which knows how new the rules are. Absent for rules in memory. */
  readonly records?: DatabaseSync;
}

/**
 * Another process may write to the database, too. The audit is a log beside the objects, so that only its retention limits
 * it, not its size. Every method rejects with `StoreError`.
 */
export class SqliteRulesStore extends ObjectRulesStore {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #objects: SqliteObjects;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #known: KnownRules | undefined;

  constructor({ database, records }: SqliteRulesStoreOptions) {
    const objects = new SqliteObjects(database, KINDS.rules);
    super({ objects });
    this.#database = database;
    this.#path = database.location() ?? ':memory:';
    this.#objects = objects;
    this.#statements = prepareStatements(database);
    this.#known = records && new KnownRules({ rules: database, records });
  }

  /**
   * Stops all clusters, until an operator resumes, if the records know of other or later rules: a missing one may have
   * forbidden evictions. Returns such a stop. Call this before any other read. Throws `StoreError`.
   */
  stopIfLost(now: EpochMs): Stop | undefined {
    return orSqliteStoreError(this.#path, () =>
      inTransaction(this.#database, 'IMMEDIATE', () => {
        const reason = this.#known?.lost();
        if (reason === undefined) this.#known?.adopt();
        else this.#stopAll({ scope: 'fleet', actor: BY_ITSELF, at: now, reason });
        const stop = fleetStopIn(this.#objects.read(rulesName(undefined)));
        return stop?.actor === BY_ITSELF ? stop : undefined;
      }),
    );
  }

  #stopAll(stop: Stop): void {
    this.#objects.write(withFleetStop(this.#objects.read(rulesName(undefined)), stop));
    const { actor, at, reason } = stop;
    this.#note({ actor, at, kind: 'stop', message: 'stopped evictions in all clusters', reason });
    this.#known?.renew();
  }

  /** Starts both reads before anything is awaited, so that one transaction covers them. */
  override async read(cluster: ClusterName): Promise<StoredRules> {
    return orSqliteStoreError(this.#path, () =>
      inTransaction(this.#database, 'DEFERRED', () => {
        this.#checkLost();
        return super.read(cluster);
      }),
    );
  }

  override async readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, StoredRules>> {
    orSqliteStoreError(this.#path, () => this.#checkLost());
    return super.readAll(clusters);
  }

  /** An older copy may replace the rules while they are in use. The next start stops all clusters. */
  #checkLost(): void {
    const reason = this.#known?.lost();
    if (reason !== undefined) throw new StoreError(`${reason}`);
  }

  /** Removes audit entries that are older than `historyDays`, as TTL does in DynamoDB. Throws `StoreError`. */
  purge(now: EpochMs, historyDays = HISTORY_DAYS): void {
    const before = historyBefore(now, historyDays);
    orSqliteStoreError(this.#path, () => this.#statements.purge.run({ before }));
  }

  close(): void {
    this.#database.close();
  }

  /** The rules are written first: after a crash in between, they are newer than the records know, and remain valid. */
  protected override async change(...change: Parameters<ObjectRulesStore['change']>): Promise<Change> {
    orSqliteStoreError(this.#path, () => this.#checkLost());
    const result = await super.change(...change);
    try {
      this.#known?.note();
    } catch {
      // The change is valid, and the next change or start repeats this.
    }
    return result;
  }

  protected override objectsFor(entry: AuditEntry | undefined): Objects {
    return entry ? this.#objects.beside(() => this.#note(entry)) : this.#objects;
  }

  protected override noting(rules: KeptRules): KeptRules {
    return rules;
  }

  override async audit({ cluster, from, to }: AuditQuery): Promise<readonly AuditEntry[]> {
    const range = { cluster: cluster ?? null, from, to };
    const rows = orSqliteStoreError(this.#path, () => this.#statements.between.all(range));
    const what = 'entry of the audit';
    return rows.map((row) => parseStoredText(auditSchema, parseStored(jsonRow, row, what).json, what));
  }

  #note(entry: AuditEntry): void {
    const { cluster, at } = entry;
    const row = { cluster: cluster ?? null, at, json: JSON.stringify(entry) };
    orSqliteStoreError(this.#path, () => this.#statements.add.run(row));
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
