import type { DatabaseSync, StatementSync } from 'node:sqlite';
import * as z from 'zod';
import {
  type Bid,
  bidSchema,
  type Lease,
  type LeaseReader,
  type LeaseRecord,
  type LeaseReport,
  type Leases,
  nextEpoch,
} from '#shared/clusters/lease.ts';
import { type StuckPod, stuckSchema } from '#shared/clusters/stuck.ts';
import { type ClusterName, clusterName, type EpochMs } from '#shared/eviction/identity.ts';
import { parseStored, parseStoredText } from '#shared/store/stored.ts';
import { VERSION } from '#shared/version.ts';
import { orSqliteStoreError } from './sqlite-database.ts';

const clusterRow = z.object({ cluster: z.string().transform(clusterName) });

const rowSchema = z.object({
  holder: z.string().nullable(),
  epoch: z.int().positive(),
  renewals: z.int().nonnegative(),
  renewed_at: z.int(),
  heard_at: z.int().nullable(),
  nodes: z.int().nonnegative().nullable(),
  version: z.string().nullable(),
  breaker_open: z.int().nullable(),
  bid: z.string().nullable(),
  stuck: z.string().nullable(),
});

/** Leases in the embedded store's database. Every method rejects with `StoreError`. */
export class SqliteLeases implements Leases, Pick<LeaseReader, 'epoch'> {
  readonly #path: string;
  readonly #look: StatementSync;
  readonly #clusters: StatementSync;
  readonly #takeFirst: StatementSync;
  readonly #take: StatementSync;
  readonly #renew: StatementSync;
  readonly #bid: StatementSync;
  readonly #reportStuck: StatementSync;
  readonly #release: StatementSync;
  readonly #releaseAll: StatementSync;

  /** `database`: the store's own, as `openDatabase` opened it. */
  constructor({ database }: { readonly database: DatabaseSync }) {
    this.#path = database.location() ?? ':memory:';
    this.#look = database.prepare('SELECT * FROM leases WHERE cluster = :cluster');
    this.#clusters = database.prepare('SELECT cluster FROM leases ORDER BY cluster');
    this.#takeFirst = database.prepare(`
      INSERT INTO leases (cluster, holder, version, epoch, renewals, renewed_at)
      VALUES (:cluster, :holder, :version, :epoch, 0, :now)
      ON CONFLICT DO NOTHING
      RETURNING *`);
    this.#take = database.prepare(`
      UPDATE leases SET holder = :holder, epoch = :epoch, renewals = 0, renewed_at = :now, version = :version,
        breaker_open = NULL, bid = NULL
      WHERE cluster = :cluster AND holder IS :foundHolder AND epoch = :foundEpoch AND renewals = :foundRenewals
      RETURNING *`);
    this.#renew = database.prepare(`
      UPDATE leases SET renewals = renewals + 1, renewed_at = :renewedAt,
        heard_at = coalesce(:heardAt, heard_at), nodes = coalesce(:nodes, nodes),
        breaker_open = coalesce(:breakerOpen, breaker_open), bid = iif(:declines, NULL, bid)
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch
      RETURNING *`);
    this.#bid = database.prepare(`
      UPDATE leases SET bid = :bid
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    this.#reportStuck = database.prepare(`
      UPDATE leases SET stuck = :stuck
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    // A released lease keeps its row, so the epoch it counts never goes back.
    this.#release = database.prepare(`
      UPDATE leases SET holder = NULL, version = NULL, breaker_open = NULL
      WHERE cluster = :cluster AND holder = :holder AND epoch = :epoch`);
    this.#releaseAll = database.prepare(
      'UPDATE leases SET holder = NULL, version = NULL, breaker_open = NULL',
    );
  }

  async look(cluster: ClusterName): Promise<LeaseRecord | undefined> {
    const row = orSqliteStoreError(this.#path, () => this.#look.get({ cluster }));
    return row && recordOf(cluster, row);
  }

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const taken = { cluster, holder, version: VERSION, epoch: nextEpoch(found?.epoch, now), now };
    const row = orSqliteStoreError(this.#path, () =>
      found
        ? this.#take.get({
            ...taken,
            foundHolder: found.holder ?? null,
            foundEpoch: found.epoch,
            foundRenewals: found.renewals,
          })
        : this.#takeFirst.get(taken),
    );
    return row && { ...recordOf(cluster, row), holder };
  }

  async renew(
    { cluster, holder, epoch }: Lease,
    { renewedAt, heardAt, nodes, breakerOpen, declines }: LeaseReport,
  ): Promise<Lease | undefined> {
    const report = {
      ...{ renewedAt, heardAt: heardAt ?? null, nodes: nodes ?? null },
      ...{ breakerOpen: breakerOpen === undefined ? null : Number(breakerOpen), declines: declines ? 1 : 0 },
    };
    const row = orSqliteStoreError(this.#path, () => this.#renew.get({ cluster, holder, epoch, ...report }));
    return row && { ...recordOf(cluster, row), holder };
  }

  async bid({ cluster, holder, epoch }: Lease, bid: Bid): Promise<void> {
    const json = JSON.stringify(bid);
    orSqliteStoreError(this.#path, () => this.#bid.run({ cluster, holder, epoch, bid: json }));
  }

  async reportStuck({ cluster, holder, epoch }: Lease, pods: readonly StuckPod[]): Promise<void> {
    const stuck = JSON.stringify(pods);
    orSqliteStoreError(this.#path, () => this.#reportStuck.run({ cluster, holder, epoch, stuck }));
  }

  async stuck(cluster: ClusterName): Promise<readonly StuckPod[]> {
    const row = orSqliteStoreError(this.#path, () => this.#look.get({ cluster }));
    const { stuck } = row ? parseStored(rowSchema, row, `lease of cluster ${cluster}`) : { stuck: null };
    return stuck === null ? [] : parseStoredText(stuckSchema, stuck, `stuck pods of cluster ${cluster}`);
  }

  async release({ cluster, holder, epoch }: Lease): Promise<void> {
    orSqliteStoreError(this.#path, () => this.#release.run({ cluster, holder, epoch }));
  }

  /** Every cluster that was ever followed, by name. Throws `StoreError`. */
  clusters(): readonly ClusterName[] {
    const rows = orSqliteStoreError(this.#path, () => this.#clusters.all());
    return rows.map((row) => parseStored(clusterRow, row, 'lease').cluster);
  }

  /**
   * Gives all leases up that a former process has left. Only for a process that has the database to itself: nobody else
   * lives who could hold one. Throws `StoreError`.
   */
  releaseAll(): void {
    orSqliteStoreError(this.#path, () => this.#releaseAll.run());
  }

  async epoch(cluster: ClusterName): Promise<number | undefined> {
    return (await this.look(cluster))?.epoch;
  }
}

function recordOf(cluster: ClusterName, row: unknown): LeaseRecord {
  const found = parseStored(rowSchema, row, `lease of cluster ${cluster}`);
  return {
    cluster,
    ...(found.holder === null ? {} : { holder: found.holder }),
    epoch: found.epoch,
    renewals: found.renewals,
    renewedAt: found.renewed_at,
    ...(found.heard_at === null ? {} : { heardAt: found.heard_at }),
    ...(found.nodes === null ? {} : { nodes: found.nodes }),
    ...(found.version === null ? {} : { version: found.version }),
    ...(found.breaker_open === null ? {} : { breakerOpen: found.breaker_open === 1 }),
    ...(found.bid === null
      ? {}
      : { bid: parseStoredText(bidSchema, found.bid, `bid for cluster ${cluster}`) }),
  };
}
