import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { AppliedFile, FileRulebook } from '#shared/clusters/policy-of-file.ts';
import type {
  AuditEntry,
  AuditQuery,
  Change,
  FleetRulings,
  GuardState,
  Orders,
  Rulings,
} from '#shared/clusters/rulebook.ts';
import {
  appliedFileSchema,
  auditSchema,
  guardStateOf,
  holdSchema,
  stopSchema,
  storedPolicySchema,
  tripsSchema,
} from '#shared/clusters/stored-rules.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { Stop, Trip } from '#shared/eviction/policy.ts';
import { StoreError } from '#shared/store/store.ts';
import { HISTORY_DAYS, historyBefore, parseStored, parseStoredText } from '#shared/store/stored.ts';
import { RulesRevision } from './rules-revision.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';

const ordersRow = z.object({ revision: z.int().positive(), json: z.string() });
const guardRow = z.object({ revision: z.int().positive(), trips: z.string() });
const fleetRow = z.object({ revision: z.int().positive(), stop: z.string().nullable() });
const jsonRow = z.object({ json: z.string() });

const ordersSchema = z.strictObject({
  policy: storedPolicySchema.exactOptional(),
  stop: stopSchema.exactOptional(),
  holds: z.array(holdSchema),
});

/** Absent from databases of the releases before it, which is no other schema to them. */
const APPLIED_FILES = `
  CREATE TABLE IF NOT EXISTS applied_files (
    cluster TEXT PRIMARY KEY,
    json TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`;

/** Who stops all clusters when rules may be missing, as a stop and the audit name it; people are named `user@host`. */
const BY_ITSELF = 'taintward';

/** The rulebook in the embedded store's database, where another process may write too. Every method rejects with `StoreError`. */
export class SqliteRulebook implements FileRulebook {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #statements: ReturnType<typeof prepareStatements>;

  readonly #revision: RulesRevision;

  /** `database`: the store's own, as `openDatabase` opened it. `newId` makes what it is known by. */
  constructor({ database, newId }: { readonly database: DatabaseSync; readonly newId?: () => string }) {
    this.#revision = new RulesRevision(database, newId);
    this.#database = database;
    this.#path = database.location() ?? ':memory:';
    this.#statements = prepareStatements(database);
  }

  /**
   * Stops all clusters when the file beside the database says that policies, stops or holds are missing from it: what forbade an eviction may
   * be among them. The stop stands, here and at each later call, until an operator resumes. Called before anything else is read.
   * Throws `StoreError`, or `ForeignFileError`.
   */
  recover(now: EpochMs): Stop | undefined {
    return orSqliteStoreError(this.#path, () => {
      if (this.#revision.lost() === undefined) this.#revision.begin();
      else if (this.#stopForLoss(now)) this.#revision.replaceNote();
      const { fleetStop } = this.#fleet();
      return fleetStop?.who === BY_ITSELF ? fleetStop : undefined;
    });
  }

  /** `false`: another process did it meanwhile. */
  #stopForLoss(now: EpochMs): boolean {
    return inTransaction(this.#database, 'IMMEDIATE', () => {
      const why = this.#revision.lost();
      if (why === undefined) return false;
      const stop: Stop = { scope: 'fleet', who: BY_ITSELF, at: now, why };
      this.#revision.renew();
      const revision = this.#fleet().fleetRevision + 1;
      this.#statements.writeFleet.run({ revision, stop: JSON.stringify(stop) });
      this.#note({ who: BY_ITSELF, at: now, kind: 'stop', what: 'stopped evictions in all clusters', why });
      return true;
    });
  }

  async read(cluster: ClusterName): Promise<Rulings> {
    return this.#transaction('DEFERRED', () => this.#rulings(cluster, this.#fleet()));
  }

  async readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, Rulings>> {
    return this.#transaction('DEFERRED', () => {
      const fleet = this.#fleet();
      const found = new Map<ClusterName, Rulings>();
      for (const cluster of clusters) {
        try {
          found.set(cluster, this.#rulings(cluster, fleet));
        } catch (error) {
          if (!(error instanceof StoreError)) throw error;
        }
      }
      return found;
    });
  }

  async changeOrders(
    cluster: ClusterName,
    found: Orders,
    next: Omit<Orders, 'revision'>,
    entry: AuditEntry,
  ): Promise<Change> {
    return this.#changeRules(() => {
      if (this.#orders(cluster).revision !== found.revision) return 'conflict';
      this.#writeOrders(cluster, found, next);
      this.#note(entry);
      return 'changed';
    });
  }

  async appliedFile(cluster: ClusterName): Promise<AppliedFile | undefined> {
    return orSqliteStoreError(this.#path, () => this.#appliedFile(cluster));
  }

  async noteFile(
    cluster: ClusterName,
    found: { readonly orders: Orders; readonly file: AppliedFile | undefined },
    file: AppliedFile,
    change?: { readonly next: Omit<Orders, 'revision'>; readonly entry: AuditEntry },
  ): Promise<Change> {
    return this.#changeRules(() => {
      if (this.#orders(cluster).revision !== found.orders.revision) return 'conflict';
      if (this.#appliedFile(cluster)?.hash !== found.file?.hash) return 'conflict';
      this.#database.exec(APPLIED_FILES);
      this.#database
        .prepare(
          'INSERT INTO applied_files (cluster, json) VALUES (:cluster, :json) ON CONFLICT DO UPDATE SET json = excluded.json',
        )
        .run({ cluster, json: JSON.stringify(file) });
      if (!change) return 'changed';
      this.#writeOrders(cluster, found.orders, change.next);
      this.#note(change.entry);
      return 'changed';
    });
  }

  async fleetStop(): Promise<Stop | undefined> {
    return orSqliteStoreError(this.#path, () => this.#fleet().fleetStop);
  }

  async changeFleetStop(found: Stop | undefined, next: Stop | undefined, entry: AuditEntry): Promise<Change> {
    return this.#changeRules(() => {
      const { fleetStop, fleetRevision } = this.#fleet();
      if (fleetStop?.at !== found?.at) return 'conflict';
      const stop = next ? JSON.stringify(next) : null;
      this.#statements.writeFleet.run({ revision: fleetRevision + 1, stop });
      this.#note(entry);
      return 'changed';
    });
  }

  async changeGuard(
    cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change> {
    return this.#transaction('IMMEDIATE', () => {
      if (this.#guard(cluster).revision !== found.revision) return 'conflict';
      const revision = found.revision + 1;
      this.#statements.writeGuard.run({ cluster, revision, trips: JSON.stringify(trips) });
      if (entry) this.#note(entry);
      return 'changed';
    });
  }

  async touchGuard(cluster: ClusterName, { revision }: GuardState): Promise<Change> {
    return this.#transaction('IMMEDIATE', () => {
      const { changes } = this.#statements.touchGuard.run({ cluster, revision });
      return changes > 0 ? 'changed' : 'conflict';
    });
  }

  async note(entry: AuditEntry): Promise<void> {
    orSqliteStoreError(this.#path, () => this.#note(entry));
  }

  async audit({ cluster, from, to }: AuditQuery): Promise<readonly AuditEntry[]> {
    const rows = orSqliteStoreError(this.#path, () =>
      this.#statements.audit.all({ cluster: cluster ?? null, from, to }),
    );
    return rows.map((row) => parseJson(auditSchema, row, 'entry of the audit'));
  }

  /** Removes entries of the audit that are older than `historyDays`: what TTL does in DynamoDB. Throws `StoreError`. */
  purge(now: EpochMs, historyDays = HISTORY_DAYS): void {
    orSqliteStoreError(this.#path, () =>
      this.#statements.purgeAudit.run({ before: historyBefore(now, historyDays) }),
    );
  }

  #rulings(cluster: ClusterName, fleet: FleetRulings): Rulings {
    return {
      orders: this.#orders(cluster),
      guard: this.#guard(cluster),
      ...fleet,
    };
  }

  #orders(cluster: ClusterName): Orders {
    const row = this.#statements.orders.get({ cluster });
    if (!row) return { revision: 0, holds: [] };
    const what = `orders for cluster ${cluster}`;
    const { revision, json } = parseStored(ordersRow, row, what);
    return { revision, ...parseStoredText(ordersSchema, json, what) };
  }

  #writeOrders(cluster: ClusterName, found: Orders, { policy, stop, holds }: Omit<Orders, 'revision'>): void {
    const json = JSON.stringify({ policy, stop, holds });
    this.#statements.writeOrders.run({ cluster, revision: found.revision + 1, json });
  }

  #appliedFile(cluster: ClusterName): AppliedFile | undefined {
    const table = this.#database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'applied_files'").get();
    const row =
      table && this.#database.prepare('SELECT json FROM applied_files WHERE cluster = ?').get(cluster);
    return row && parseJson(appliedFileSchema, row, `policy file of cluster ${cluster}`);
  }

  #guard(cluster: ClusterName): GuardState {
    const row = this.#statements.guard.get({ cluster });
    if (!row) return { revision: 0, trips: [] };
    const what = `guard of cluster ${cluster}`;
    const { revision, trips } = parseStored(guardRow, row, what);
    return guardStateOf(revision, parseStoredText(tripsSchema, trips, what));
  }

  #fleet(): FleetRulings {
    const row = this.#statements.fleet.get();
    if (!row) return { fleetRevision: 0 };
    const what = 'stop of all clusters';
    const { revision: fleetRevision, stop } = parseStored(fleetRow, row, what);
    if (stop === null) return { fleetRevision };
    return { fleetRevision, fleetStop: parseStoredText(stopSchema, stop, what) };
  }

  #note(entry: AuditEntry): void {
    const { cluster, at } = entry;
    const json = JSON.stringify(entry);
    this.#statements.note.run({ cluster: cluster ?? null, at, json });
  }

  #changeRules(change: () => Change): Change {
    const result = this.#transaction('IMMEDIATE', change);
    if (result === 'changed') this.#revision.note();
    return result;
  }

  #transaction<T>(kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
    return orSqliteStoreError(this.#path, () => inTransaction(this.#database, kind, work));
  }
}

function parseJson<T>(schema: z.ZodType<T>, row: unknown, what: string): T {
  return parseStoredText(schema, parseStored(jsonRow, row, what).json, what);
}

function prepareStatements(database: DatabaseSync) {
  return {
    orders: database.prepare('SELECT revision, json FROM orders WHERE cluster = :cluster'),
    writeOrders: database.prepare(`
      INSERT INTO orders (cluster, revision, json) VALUES (:cluster, :revision, :json)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, json = excluded.json`),
    guard: database.prepare('SELECT revision, trips FROM guards WHERE cluster = :cluster'),
    writeGuard: database.prepare(`
      INSERT INTO guards (cluster, revision, trips) VALUES (:cluster, :revision, :trips)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, trips = excluded.trips`),
    touchGuard: database.prepare(
      'UPDATE guards SET revision = revision WHERE cluster = :cluster AND revision = :revision',
    ),
    fleet: database.prepare('SELECT revision, stop FROM fleet'),
    writeFleet: database.prepare(`
      INSERT INTO fleet (id, revision, stop) VALUES (1, :revision, :stop)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, stop = excluded.stop`),
    note: database.prepare('INSERT INTO audit (cluster, at, json) VALUES (:cluster, :at, :json)'),
    audit: database.prepare(`
      SELECT json FROM audit
      WHERE at >= :from AND at < :to AND (:cluster IS NULL OR cluster IS NULL OR cluster = :cluster)
      ORDER BY at DESC, id DESC`),
    purgeAudit: database.prepare('DELETE FROM audit WHERE at <= :before'),
  };
}
