import * as z from 'zod';
import { type ClusterName, clusterName, type EpochMs } from '#shared/eviction/identity.ts';
import type { DynamoDbTable, Item, Key } from '#shared/store/dynamodb-table.ts';
import { parseStored } from '#shared/store/stored.ts';
import { type Lease, type LeaseReader, type Leases, nextEpoch } from './lease.ts';

/** The partition keys of leases start with this, and no others do: a relay may write to these alone. */
export const LEASE_PREFIX = 'LEASE#';

const epochSchema = z.int().positive();

/** A lease that somebody holds; one that was released has no holder. */
const heldSchema = z.object({
  pk: z.string().transform((pk) => clusterName(pk.slice(LEASE_PREFIX.length))),
  holder: z.string(),
  expiresAt: z.int(),
});

const leaseKey = (cluster: ClusterName): Key => ({ pk: `${LEASE_PREFIX}${cluster}`, sk: 'LEASE' });

/** Leases as `LEASE` items of the store's table, never deleted. Every method rejects with `StoreError`. */
export class DynamoDbLeases implements Leases, LeaseReader {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async acquire(
    cluster: ClusterName,
    holder: string,
    now: EpochMs,
    ttlMs: number,
  ): Promise<Lease | undefined> {
    // Read first: a write that fails costs five times a read, and most are tried while another one holds the lease.
    const found = await this.#table.get(leaseKey(cluster));
    const held = heldSchema.safeParse(found).data;
    if (held && held.holder !== holder && held.expiresAt > now) return undefined;
    const expiresAt = now + ttlMs;
    const epoch = nextEpoch(found && epochOf(cluster, found), now);
    const taken = await this.#table.update({
      key: leaseKey(cluster),
      set: { holder, epoch, expiresAt },
      // Whoever took, renewed or released it since it was read was faster.
      expected: { holder: found?.['holder'], epoch: found?.['epoch'], expiresAt: found?.['expiresAt'] },
    });
    return taken && { cluster, holder, epoch, expiresAt };
  }

  async renew(lease: Lease, now: EpochMs, ttlMs: number): Promise<Lease | undefined> {
    const { cluster, holder, epoch } = lease;
    const expiresAt = now + ttlMs;
    const renewed = await this.#table.update({
      key: leaseKey(cluster),
      set: { expiresAt },
      expected: { holder, epoch },
    });
    return renewed && { ...lease, expiresAt };
  }

  async release({ cluster, holder, epoch }: Lease): Promise<void> {
    await this.#table.update({
      key: leaseKey(cluster),
      set: { holder: undefined },
      expected: { holder, epoch },
    });
  }

  async held(clusters: readonly ClusterName[], now: EpochMs): Promise<ReadonlySet<ClusterName>> {
    const held = new Set<ClusterName>();
    for await (const item of this.#table.batchGet(clusters.map(leaseKey))) {
      const lease = heldSchema.safeParse(item).data;
      if (lease && lease.expiresAt > now) held.add(lease.pk);
    }
    return held;
  }

  async epoch(cluster: ClusterName): Promise<number | undefined> {
    const item = await this.#table.get(leaseKey(cluster));
    return item && epochOf(cluster, item);
  }
}

const epochOf = (cluster: ClusterName, item: Item): number =>
  parseStored(epochSchema, item['epoch'], `epoch of the lease of cluster ${cluster}`);
