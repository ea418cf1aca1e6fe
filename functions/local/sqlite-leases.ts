import type { DatabaseSync, StatementSync } from 'node:sqlite';
import * as z from 'zod';
import { type Lease, type LeaseReader, type Leases, nextEpoch } from '#shared/clusters/lease.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { parseStored } from '#shared/store/stored.ts';
import { orSqliteStoreError } from './sqlite-database.ts';

const epochRow = z.object({ epoch: z.int().positive() });

/** Leases in the embedded store's database. Every method rejects with `StoreError`. */
export class SqliteLeases implements Leases, Pick<LeaseReader, 'epoch'> {
  readonly #path: string;
  readonly #acquire: StatementSync;
  readonly #renew: StatementSync;
  readonly #release: StatementSync;
  readonly #epoch: StatementSync;

  /** `database`: the store's own, as `openDatabase` opened it. */
  constructor({ database }: { readonly database: DatabaseSync }) {
    this.#path = database.location() ?? ':memory:';
    // A released lease keeps its row, so the epoch it counts never goes back.
    this.#acquire = database.prepare(`
      INSERT INTO leases (cluster, holder, epoch, expires_at) VALUES (:cluster, :holder, :least, :expiresAt)
      ON CONFLICT DO UPDATE SET
        holder = excluded.holder, epoch = max(epoch + 1, excluded.epoch), expires_at = excluded.expires_at
      WHERE holder IS NULL OR holder = excluded.holder OR expires_at <= :now
      RETURNING epoch`);
    this.#renew = database.prepare(`
      UPDATE leases SET expires_at = :expiresAt
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    this.#release = database.prepare(`
      UPDATE leases SET holder = NULL
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    this.#epoch = database.prepare('SELECT epoch FROM leases WHERE cluster = :cluster');
  }

  async acquire(
    cluster: ClusterName,
    holder: string,
    now: EpochMs,
    ttlMs: number,
  ): Promise<Lease | undefined> {
    const expiresAt = now + ttlMs;
    const least = nextEpoch(undefined, now);
    const row = orSqliteStoreError(this.#path, () =>
      this.#acquire.get({ cluster, holder, least, expiresAt, now }),
    );
    return row && { cluster, holder, epoch: epochOf(cluster, row), expiresAt };
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

  async epoch(cluster: ClusterName): Promise<number | undefined> {
    const row = orSqliteStoreError(this.#path, () => this.#epoch.get({ cluster }));
    return row && epochOf(cluster, row);
  }
}

const epochOf = (cluster: ClusterName, row: unknown): number =>
  parseStored(epochRow, row, `epoch of the lease of cluster ${cluster}`).epoch;
