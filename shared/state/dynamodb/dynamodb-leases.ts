import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { parseStored } from '#shared/state/stored.ts';
import { stuckSchema } from '#shared/state/stuck.ts';
import { readAs } from '#shared/text/read-as.ts';
import { type EpochMs, epochMs } from '#shared/time/epoch-ms.ts';
import { VERSION } from '#shared/version.ts';
import { faultsSchema } from '../fault.ts';
import {
  type Lease,
  type LeaseReader,
  type LeaseRecord,
  type LeaseReport,
  type LeaseRequest,
  type Leases,
  leaseRequestSchema,
  nextEpoch,
} from '../lease.ts';
import type { DynamoDbTable, Item, Key } from './dynamodb-table.ts';

/** The prefix of the partition keys of leases, and of no others: a relay may write only to these. */
export const LEASE_PREFIX = 'LEASE#';

const recordSchema = z.object({
  holder: z.string().exactOptional(),
  epoch: z.int().positive(),
  renewals: z.int().nonnegative(),
  renewedAt: epochMs,
  heardAt: epochMs.exactOptional(),
  nodes: z.int().nonnegative().exactOptional(),
  version: z.string().exactOptional(),
  breakerOpen: z.boolean().exactOptional(),
  bid: leaseRequestSchema.exactOptional(),
  faults: z.object({ epoch: z.int(), list: faultsSchema }).exactOptional(),
  senders: z.object({ epoch: z.int(), ids: z.array(z.string()) }).exactOptional(),
});

/**
 * Maximum of remembered senders: relays that held the lease in succession while a message of the first was in flight.
 */
const SENDERS = 10;

/** A separate item, because a lease is renewed every few seconds, and each write is charged by the item's size. */
const stuckKey = (cluster: ClusterName): Key => ({ pk: `${LEASE_PREFIX}${cluster}`, sk: 'STUCK' });

const leaseKey = (cluster: ClusterName): Key => ({ pk: `${LEASE_PREFIX}${cluster}`, sk: 'LEASE' });

/** Leases as `LEASE` items of the store's table, never deleted. Every method rejects with `StoreError`. */
export class DynamoDbLeases implements Leases, LeaseReader {
  readonly #table: DynamoDbTable;
  readonly #sender: string | undefined;

  /** `sender`: the name under which queues report the relay that acquires leases here. Absent: unknown. */
  constructor(table: DynamoDbTable, { sender }: { readonly sender?: string | undefined } = {}) {
    this.#table = table;
    this.#sender = sender;
  }

  async look(
    cluster: ClusterName,
    { mayLag = false }: { readonly mayLag?: boolean } = {},
  ): Promise<LeaseRecord | undefined> {
    const item = await this.#table.get(leaseKey(cluster), { consistent: !mayLag });
    return item && recordOf(cluster, item);
  }

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const epoch = nextEpoch(found?.epoch, now);
    const senders = this.#sender && { epoch, ids: withSender(this.#sender, found?.senders) };
    const item = await this.#table.update({
      key: leaseKey(cluster),
      set: {
        ...{ holder, version: VERSION, epoch, renewals: 0, renewedAt: now, senders },
        ...{ breakerOpen: undefined, faults: undefined, bid: undefined },
      },
      expected: { holder: found?.holder, epoch: found?.epoch, renewals: found?.renewals },
    });
    return item && leaseOf(cluster, item, holder);
  }

  async renew(
    { cluster, holder, epoch }: Lease,
    { renewedAt, heardAt, nodes, breakerOpen, faults, declines }: LeaseReport,
  ): Promise<Lease | undefined> {
    const item = await this.#table.update({
      key: leaseKey(cluster),
      set: {
        renewedAt,
        ...(heardAt === undefined ? {} : { heardAt }),
        ...(nodes === undefined ? {} : { nodes }),
        ...(breakerOpen === undefined ? {} : { breakerOpen }),
        ...(faults === undefined ? {} : { faults: { epoch, list: faults } }),
        ...(declines ? { bid: undefined } : {}),
      },
      // Added, not set: a renewal that the client repeats because its response was lost still succeeds.
      add: { renewals: 1 },
      expected: { holder, epoch },
    });
    return item && leaseOf(cluster, item, holder);
  }

  async bid({ cluster, holder, epoch }: Lease, bid: LeaseRequest): Promise<void> {
    await this.#table.update({ key: leaseKey(cluster), set: { bid }, expected: { holder, epoch } });
  }

  async reportStuck({ cluster, epoch }: Lease, pods: readonly StuckPod[]): Promise<void> {
    const { epoch: now } = (await this.look(cluster)) ?? {};
    if (now === epoch) await this.#table.update({ key: stuckKey(cluster), set: { pods } });
  }

  async stuck(cluster: ClusterName): Promise<readonly StuckPod[]> {
    const item = await this.#table.get(stuckKey(cluster));
    return item ? parseStored(stuckSchema, item['pods'], `stuck pods of cluster ${cluster}`) : [];
  }

  async release({ cluster, holder, epoch }: Lease): Promise<void> {
    await this.#table.update({
      key: leaseKey(cluster),
      set: { holder: undefined, version: undefined, breakerOpen: undefined, faults: undefined },
      expected: { holder, epoch },
    });
  }

  async lookAtAll(clusters: readonly ClusterName[]): Promise<readonly LeaseRecord[]> {
    const items = await Array.fromAsync(this.#table.batchGet(clusters.map(leaseKey)));
    return items.flatMap((item) => {
      // Omit an unreadable lease: no relay can hold it.
      const { data } = readAs(recordSchema, item);
      return data ? [spoken(clusterName(`${item['pk']}`.slice(LEASE_PREFIX.length)), data)] : [];
    });
  }

  async epoch(cluster: ClusterName): Promise<number | undefined> {
    return (await this.look(cluster))?.epoch;
  }
}

const withSender = (sender: string, before: readonly string[] = []): readonly string[] =>
  [sender, ...before.filter((each) => each !== sender)].slice(0, SENDERS);

const recordOf = (cluster: ClusterName, item: Item): LeaseRecord =>
  spoken(cluster, parseStored(recordSchema, item, `lease of cluster ${cluster}`));

/**
 * Returns a lease without the senders and faults of an earlier epoch. A relay of a release that writes no senders, or
 * reports no faults, leaves those of the relay before it. A lease without a holder has no faults either.
 */
const spoken = (
  cluster: ClusterName,
  { senders, faults, ...record }: z.output<typeof recordSchema>,
): LeaseRecord => ({
  cluster,
  ...record,
  ...(faults?.epoch === record.epoch && record.holder !== undefined ? { faults: faults.list } : {}),
  ...(senders?.epoch === record.epoch ? { senders: senders.ids } : {}),
});

const leaseOf = (cluster: ClusterName, item: Item, holder: string): Lease => ({
  ...recordOf(cluster, item),
  holder,
});
