import type { DatabaseSync, StatementSync } from 'node:sqlite';
import * as z from 'zod';
import type { Lease, Leases } from '#shared/clusters/lease.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { parseStored } from '#shared/store/item-schemas.ts';
import { orSqliteStoreError } from './sqlite-database.ts';

const epochRow = z.object({ epoch: z.int().positive() });

/** Leases in the embedded store's database. Every method rejects with `StoreError`. */
export class SqliteLeases implements Leases {
  readonly #path: string;
  readonly #acquire: StatementSync;
  readonly #renew: StatementSync;
  readonly #release: StatementSync;

  /** `database`: the store's own, as `openDatabase` opened it. */
  constructor({ database }: { readonly database: DatabaseSync }) {
    this.#path = database.location() ?? ':memory:';
    // A released lease keeps its row, so the epoch it counts never goes back.
    this.#acquire = database.prepare(`
      INSERT INTO leases (cluster, holder, epoch, expires_at) VALUES (:cluster, :holder, 1, :expiresAt)
      ON CONFLICT DO UPDATE SET holder = excluded.holder, epoch = epoch + 1, expires_at = excluded.expires_at
      WHERE holder IS NULL OR holder = excluded.holder OR expires_at <= :now
      RETURNING epoch`);
    this.#renew = database.prepare(`
      UPDATE leases SET expires_at = :expiresAt
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    this.#release = database.prepare(`
      UPDATE leases SET holder = NULL
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
  }

  async acquire(
    cluster: ClusterName,
    holder: string,
    now: EpochMs,
    ttlMs: number,
  ): Promise<Lease | undefined> {
    const expiresAt = now + ttlMs;
    const row = orSqliteStoreError(this.#path, () => this.#acquire.get({ cluster, holder, expiresAt, now }));
    if (!row) return undefined;
    const { epoch } = parseStored(epochRow, row, `epoch of the lease of cluster ${cluster}`);
    return { cluster, holder, epoch, expiresAt };
  }

  async renew(lease: Lease, now: EpochMs, ttlMs: number): Promise<Lease | undefined> {
    const { cluster, holder, epoch } = lease;
    const expiresAt = now + ttlMs;
    const { changes } = orSqliteStoreError(this.#path, () =>
      this.#renew.run({ cluster, holder, epoch, expiresAt }),
    );
    return changes > 0 ? { ...lease, expiresAt } : undefined;
  }

  async release({ cluster, holder, epoch }: Lease): Promise<void> {
    orSqliteStoreError(this.#path, () => this.#release.run({ cluster, holder, epoch }));
  }
}
