import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop, Trip } from '#shared/eviction/policy.ts';
import { nextOrders } from '#shared/state/operator-controls.ts';
import { historyTtl, parseStored } from '#shared/state/stored.ts';
import { auditFor, fleetRules, NO_RULES, readableRules } from '#shared/state/stored-rules.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type {
  AuditEntry,
  AuditQuery,
  Change,
  GuardState,
  OperatorControls,
  RulesStore,
  StoredFleetRules,
  StoredRules,
} from '../rules-store.ts';
import {
  auditSchema,
  guardStateOf,
  ordersFields,
  stopSchema,
  storedPolicy,
  tripsSchema,
} from '../stored-rules.ts';
import { CLUSTER_PREFIX, type Item, type Key, type Update } from './dynamodb-item.ts';
import { LEASE_PREFIX } from './dynamodb-leases.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { padded } from './items.ts';
import { historyDaysOf } from './table-definition.ts';

export const FLEET_KEY = 'FLEET';
/** The index key of all audit entries, and the prefix of their sort keys. */
const AUDIT_KEY = 'AUDIT';

const ordersKey = (cluster: ClusterName): Key => ({ pk: `${CLUSTER_PREFIX}${cluster}`, sk: 'POLICY' });
/** Returns a key beside the lease, where a relay may write. */
const guardKey = (cluster: ClusterName): Key => ({ pk: `${LEASE_PREFIX}${cluster}`, sk: 'GUARD' });
const keysOf = (cluster: ClusterName): readonly Key[] => [ordersKey(cluster), guardKey(cluster)];
const FLEET_STOP_KEY: Key = { pk: FLEET_KEY, sk: 'STOP' };

const key = { pk: z.string(), sk: z.string() };
const revision = z.int().positive();

const ordersSchema = z.strictObject({
  ...key,
  revision,
  ...ordersFields,
  stops: ordersFields.stops.default([]),
  holds: ordersFields.holds.default([]),
});
const ORDERS_FIELDS = ['revision', 'policy', 'stops', 'resumedFrom', 'holds'] as const;
const guardSchema = z.strictObject({ ...key, revision, trips: tripsSchema });
/** `stoppedAt`: the stop's `at`, which identifies the stop. */
const fleetStopSchema = z.strictObject({
  ...key,
  stop: stopSchema.exactOptional(),
  stoppedAt: z.int().exactOptional(),
  revision,
});

/**
 * The rules store in the store's table: `POLICY` and `AUDIT#…` beside a registration, `GUARD` beside the lease, and the
 * fleet's `STOP`. Items change by attribute, never as a whole, so that permissions can allow holds and stops without
 * policy changes.
 */
export class DynamoDbRulesStore implements RulesStore {
  readonly #table: DynamoDbTable;
  readonly #historyDays: () => Promise<number>;

  constructor(table: DynamoDbTable) {
    this.#table = table;
    this.#historyDays = historyDaysOf(table);
  }

  async read(cluster: ClusterName, fleet?: StoredFleetRules): Promise<StoredRules> {
    if (!fleet) return storedRulesOf(cluster, await this.#items([cluster], true));
    return { ...fleet, ...ownStoredRulesOf(cluster, await this.#itemsAt(keysOf(cluster), true)) };
  }

  async readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, StoredRules>> {
    const items = await this.#items(clusters, false);
    // Reject if the fleet's stop is unreadable: it applies to every cluster.
    fleetOf(items);
    return readableRules(clusters, (cluster) => storedRulesOf(cluster, items));
  }

  async #items(clusters: readonly ClusterName[], consistent: boolean): Promise<Items> {
    return this.#itemsAt([FLEET_STOP_KEY, ...clusters.flatMap(keysOf)], consistent);
  }

  async #itemsAt(keys: readonly Key[], consistent: boolean): Promise<Items> {
    const items = await Array.fromAsync(this.#table.batchGet(keys, { consistent }));
    return new Map(items.map((item) => [idOf({ pk: `${item['pk']}`, sk: `${item['sk']}` }), item]));
  }

  async changeOrders(
    cluster: ClusterName,
    found: OperatorControls,
    next: Omit<OperatorControls, 'revision'>,
    entry: AuditEntry,
  ): Promise<Change> {
    const after = nextOrders(found, next);
    const stored = { ...after, policy: storedPolicy(after.policy) };
    const changed = ORDERS_FIELDS.filter((field) => !isDeepStrictEqual(after[field], found[field]));
    const update: Update = {
      key: ordersKey(cluster),
      set: Object.fromEntries(changed.map((field) => [field, stored[field]])),
      expected: { revision: found.revision || undefined },
    };
    return this.#write(update, entry);
  }

  async fleetStop(): Promise<Stop | undefined> {
    return fleetOf(await this.#items([], true)).fleetStop;
  }

  async changeFleetStop(found: Stop | undefined, next: Stop | undefined, entry: AuditEntry): Promise<Change> {
    const update: Update = {
      key: FLEET_STOP_KEY,
      set: { stop: next, stoppedAt: next?.at },
      add: { revision: 1 },
      expected: { stoppedAt: found?.at },
    };
    return this.#write(update, entry);
  }

  async changeGuard(
    cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change> {
    const update: Update = {
      key: guardKey(cluster),
      set: { revision: found.revision + 1, trips },
      expected: { revision: found.revision || undefined },
    };
    if (entry) return this.#write(update, entry);
    return (await this.#table.update(update)) ? 'changed' : 'conflict';
  }

  async touchGuard(cluster: ClusterName, { revision }: GuardState): Promise<Change> {
    const written = await this.#table.update({
      key: guardKey(cluster),
      set: { revision },
      expected: { revision },
    });
    return written ? 'changed' : 'conflict';
  }

  async #write(update: Update, entry: AuditEntry): Promise<Change> {
    const days = await this.#historyDays();
    const written = await this.#table.transact([{ update }, { update: auditUpdate(entry, days) }]);
    return written ? 'changed' : 'conflict';
  }

  async note(entry: AuditEntry): Promise<void> {
    await this.#table.update(auditUpdate(entry, await this.#historyDays()));
  }

  async audit(query: AuditQuery): Promise<readonly AuditEntry[]> {
    const { cluster, from, to } = query;
    const partitions =
      cluster === undefined ? [] : [`${CLUSTER_PREFIX}${cluster}`, guardKey(cluster).pk, FLEET_KEY];
    const [first, last] = [auditSort(from), auditSort(to)];
    const items =
      cluster === undefined
        ? await Array.fromAsync(this.#table.indexed(AUDIT_KEY))
        : (
            await Promise.all(partitions.map((pk) => Array.fromAsync(this.#table.query(pk, first, last))))
          ).flat();
    const entries = items
      .flatMap((item) => (cluster === undefined ? foundByIndex(item) : [found(item)]))
      .filter(({ entry, pk }) => partitionOf(entry) === pk)
      .map(({ entry }) => entry);
    return auditFor(query, entries);
  }
}

type Items = ReadonlyMap<string, Item>;

const idOf = ({ pk, sk }: Key): string => `${pk}\n${sk}`;

const storedRulesOf = (cluster: ClusterName, items: Items): StoredRules => ({
  ...ownStoredRulesOf(cluster, items),
  ...fleetOf(items),
});

function ownStoredRulesOf(cluster: ClusterName, items: Items): Pick<StoredRules, 'orders' | 'guard'> {
  const orders = items.get(idOf(ordersKey(cluster)));
  const guard = items.get(idOf(guardKey(cluster)));
  return {
    orders: orders ? ordersOf(cluster, orders) : NO_RULES.orders,
    guard: guard ? guardOf(cluster, guard) : NO_RULES.guard,
  };
}

function ordersOf(cluster: ClusterName, item: Item): OperatorControls {
  const found = parseStored(ordersSchema, item, `orders for cluster ${cluster}`);
  const { pk: _pk, sk: _sk, ...orders } = found;
  return orders;
}

function guardOf(cluster: ClusterName, item: Item): GuardState {
  const { trips, revision } = parseStored(guardSchema, item, `guard of cluster ${cluster}`);
  return guardStateOf(revision, trips);
}

function fleetOf(items: Items): StoredFleetRules {
  const item = items.get(idOf(FLEET_STOP_KEY));
  if (!item) return fleetRules(0, undefined);
  const { stop, revision: found } = parseStored(fleetStopSchema, item, 'stop of all clusters');
  return fleetRules(found, stop);
}

const auditSort = (at: EpochMs): string => `${AUDIT_KEY}#${padded(at)}`;

interface Found {
  readonly entry: AuditEntry;
  readonly pk: unknown;
}

const found = (item: Item): Found => ({
  entry: parseStored(auditSchema, item, `item ${item['sk']} of ${item['pk']}`),
  pk: item['pk'],
});

/**
 * Skips an unreadable entry in a relay's partition: a writer for one cluster must not hide the entries of others.
 * Users' entries must be readable.
 */
function foundByIndex(item: Item): readonly Found[] {
  const { pk } = item;
  if (pk === FLEET_KEY || `${pk}`.startsWith(CLUSTER_PREFIX)) return [found(item)];
  const { data: entry } = readAs(auditSchema, item);
  return entry ? [{ entry, pk }] : [];
}

/** Returns the partition of an entry. The relay writes the guard's entries, and its permissions cover only leases. */
function partitionOf({ cluster, kind }: AuditEntry): string {
  if (cluster === undefined) return FLEET_KEY;
  const byGuard = kind === 'guard-tripped' || kind === 'guard-calm';
  return byGuard ? guardKey(cluster).pk : `${CLUSTER_PREFIX}${cluster}`;
}

/** Returns an update that creates an entry, so that no permission to put items is needed. */
function auditUpdate(entry: AuditEntry, days: number): Update {
  const sort = `${padded(entry.at)}#${randomBytes(6).toString('base64url')}`;
  return {
    key: { pk: partitionOf(entry), sk: `${AUDIT_KEY}#${sort}` },
    set: { ...defined(entry), clusterKey: AUDIT_KEY, clusterSort: sort, ttl: historyTtl(entry.at, days) },
    // Entries are never overwritten.
    expected: { actor: undefined },
  };
}
