import * as z from 'zod';
import { type ClusterName, clusterName, type EpochMs } from '#shared/eviction/identity.ts';
import type { DynamoDbTable, Item, Key } from '#shared/store/dynamodb-table.ts';
import { parseStored } from '#shared/store/item-schemas.ts';
import type { Lease, LeaseReader, Leases } from './lease.ts';

const epochSchema = z.int().positive();

/** A lease that somebody holds; one that was released has no holder. */
const heldSchema = z.object({ cluster: z.string(), holder: z.string(), expiresAt: z.int() });
type Held = z.output<typeof heldSchema>;

const leaseKey = (cluster: ClusterName): Key => ({ pk: `CLUSTER#${cluster}`, sk: 'LEASE' });

/** Leases as `LEASE` items of the store's table. Every method rejects with `StoreError`. */
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
    // Read first: a write that fails its condition costs five times a read, and most are tried while another one holds it.
    const found = await this.#table.get(leaseKey(cluster));
    const held = found && asHeld(found);
    if (held && held.holder !== holder && held.expiresAt > now) return undefined;
    const expiresAt = now + ttlMs;
    const taken = await this.#table.update({
      key: leaseKey(cluster),
      set: { holder, expiresAt },
      // The item is never deleted, so the epoch it counts never goes back.
      add: { epoch: 1 },
      // Whoever took, renewed or released it since it was read was faster.
      expected: { holder: found?.['holder'], epoch: found?.['epoch'], expiresAt: found?.['expiresAt'] },
    });
    if (!taken) return undefined;
    const epoch = parseStored(epochSchema, taken['epoch'], `epoch of the lease of cluster ${cluster}`);
    return { cluster, holder, epoch, expiresAt };
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
      const lease = asHeld(item);
      if (lease && lease.expiresAt > now) held.add(clusterName(lease.cluster));
    }
    return held;
  }
}

function asHeld(item: Item): Held | undefined {
  const cluster = String(item['pk']).slice('CLUSTER#'.length);
  return heldSchema.safeParse({ ...item, cluster }).data;
}
