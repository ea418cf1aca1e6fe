import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { stuckSchema, tripProgressSchema } from '#shared/state/lease.ts';
import { parseStored } from '#shared/state/stored.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { KeysOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { faultsSchema } from '../fault.ts';
import {
  acquisition,
  isHeld,
  type Lease,
  type LeaseReader,
  type LeaseRecord,
  type LeaseReport,
  type LeaseRequest,
  type Leases,
  leaseFields,
  leaseRequestSchema,
  release,
  renewal,
  request,
} from '../lease.ts';
import type { Item, Key } from './dynamodb-item.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';

/** The prefix of the partition keys of leases, and of no others: a relay may write only to these. */
export const LEASE_PREFIX = 'LEASE#';

const recordSchema = z.object({
  ...leaseFields,
  holder: z.string().exactOptional(),
  bid: leaseRequestSchema.exactOptional(),
  faults: z.object({ epoch: z.int(), list: faultsSchema }).exactOptional(),
  tripProgress: z.object({ epoch: z.int(), list: tripProgressSchema }).exactOptional(),
  senders: z.object({ epoch: z.int(), ids: z.array(z.string()) }).exactOptional(),
} satisfies KeysOf<Omit<LeaseRecord, 'cluster'>>);

/** Maximum of remembered senders: relays in succession while a message of the first was in flight. */
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

  async read(
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
    const change = acquisition(found, holder, now);
    const { epoch } = change.set;
    const senders = this.#sender && { epoch, ids: withSender(this.#sender, found?.senders) };
    const item = await this.#table.update({
      ...change,
      key: leaseKey(cluster),
      set: { ...change.set, senders },
    });
    return item && leaseOf(cluster, item, holder);
  }

  async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const { cluster, holder, epoch } = lease;
    const { set, ...change } = renewal(lease, report);
    const { faults, tripProgress, ...rest } = set;
    const item = await this.#table.update({
      ...change,
      key: leaseKey(cluster),
      set: {
        ...rest,
        ...(faults === undefined ? {} : { faults: { epoch, list: faults } }),
        ...(tripProgress === undefined ? {} : { tripProgress: { epoch, list: tripProgress } }),
      },
    });
    return item && leaseOf(cluster, item, holder);
  }

  async bid(lease: Lease, bid: LeaseRequest): Promise<void> {
    await this.#table.update({ key: leaseKey(lease.cluster), ...request(lease, bid) });
  }

  async reportStuck(lease: Lease, pods: readonly StuckPod[]): Promise<void> {
    const { cluster } = lease;
    if (!isHeld(await this.read(cluster), lease)) return;
    await this.#table.update({ key: stuckKey(cluster), set: { pods } });
  }

  async stuck(cluster: ClusterName): Promise<readonly StuckPod[]> {
    const item = await this.#table.get(stuckKey(cluster));
    return item ? parseStored(stuckSchema, item['pods'], `stuck pods of cluster ${cluster}`) : [];
  }

  async release(lease: Lease): Promise<void> {
    await this.#table.update({ key: leaseKey(lease.cluster), ...release(lease) });
  }

  async readAll(clusters: readonly ClusterName[]): Promise<readonly LeaseRecord[]> {
    const items = await Array.fromAsync(this.#table.batchGet(clusters.map(leaseKey)));
    return items.flatMap((item) => {
      // Omit an unreadable lease: no relay can hold it.
      const { data } = readAs(recordSchema, item);
      return data ? [checked(clusterName(`${item['pk']}`.slice(LEASE_PREFIX.length)), data)] : [];
    });
  }
}

const withSender = (sender: string, before: readonly string[] = []): readonly string[] =>
  [sender, ...before.filter((each) => each !== sender)].slice(0, SENDERS);

const recordOf = (cluster: ClusterName, item: Item): LeaseRecord =>
  checked(cluster, parseStored(recordSchema, item, `lease of cluster ${cluster}`));

/**
 * Omits the senders and reports of an earlier epoch, which a relay of a release without them leaves, and reports
 * without a holder.
 */
const checked = (
  cluster: ClusterName,
  { senders, faults, tripProgress, ...record }: z.output<typeof recordSchema>,
): LeaseRecord => ({
  cluster,
  ...record,
  ...(faults?.epoch === record.epoch && record.holder !== undefined ? { faults: faults.list } : {}),
  ...(tripProgress?.epoch === record.epoch && record.holder !== undefined
    ? { tripProgress: tripProgress.list }
    : {}),
  ...(senders?.epoch === record.epoch ? { senders: senders.ids } : {}),
});

const leaseOf = (cluster: ClusterName, item: Item, holder: string): Lease => ({
  ...recordOf(cluster, item),
  holder,
});
