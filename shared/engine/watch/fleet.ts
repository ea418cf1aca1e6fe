import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord, LeaseRequest } from '#shared/state/lease.ts';
import type { Stopwatch } from '#shared/time/clock.ts';

/** Per held lease, a relay lets others acquire a free lease first for this long, up to the maximum below. */
const HANDICAP_MS = 50;
export const MAX_HANDICAP_MS = 2_000;
/** A relay at its capacity leaves a free lease to others for this long; then, late is better than never. */
export const OVER_BUDGET_MS = 5_000;
/** A lease that was handed off to its bidder is reserved for that relay for this long. */
const RESERVED_MS = 5_000;
/** A disconnected relay leaves the lease that it hands off to others for this long, jittered by half. */
const AVOIDANCE_MS = 120_000;
/** A lease that no relay has acquired for this long has no other candidate than the relay that handed it off. */
const UNWANTED_MS = 10_000;
/** A new relay requests no leases for this long: it may replace another relay, whose clusters it gets anyway. */
const SETTLING_MS = 60_000;
/** A requested lease that hasn't come by then isn't coming. */
const ANSWER_MS = 20_000;

export interface FleetOptions {
  readonly holder: string;
  /** Capacity in nodes: this relay's maximum load while other relays are available. */
  readonly budget: number;
  readonly stopwatch: Stopwatch;
}

/** The leases of all clusters, as this relay's lease managers see them, and this relay's share of them. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #startedMs: number;
  /** By cluster; `undefined`: looked at and never acquired. */
  readonly #seen = new Map<ClusterName, LeaseRecord | undefined>();
  /** By cluster, until when by the stopwatch. */
  readonly #avoided = new Map<ClusterName, number>();
  #requested: { readonly cluster: ClusterName; readonly atMs: number } | undefined;
  #giving: ClusterName | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#startedMs = options.stopwatch();
  }

  saw(cluster: ClusterName, record: LeaseRecord | undefined): void {
    this.#seen.set(cluster, record);
    const isOurs = record?.holder === this.#options.holder;
    if (isOurs && this.#requested?.cluster === cluster) this.#requested = undefined;
    if (!isOurs && this.#giving === cluster) this.#giving = undefined;
  }

  /** Leaves a cluster to others for a while, unless no other relay acquires its lease. */
  avoid(cluster: ClusterName): void {
    const durationMs = AVOIDANCE_MS * (0.5 + Math.random() / 2);
    this.#avoided.set(cluster, this.#options.stopwatch() + durationMs);
  }

  forget(cluster: ClusterName): void {
    this.#seen.delete(cluster);
    this.#avoided.delete(cluster);
    if (this.#giving === cluster) this.#giving = undefined;
  }

  get load(): number {
    return loadOf(this.#records(), this.#options.holder);
  }

  get excess(): number {
    return Math.max(0, this.load - this.#options.budget);
  }

  /** Returns for how long, in ms, this relay lets others first acquire the cluster's free lease. */
  acquireDelayMs(cluster: ClusterName): number {
    const { holder, budget } = this.#options;
    const record = this.#seen.get(cluster);
    const ours = this.#records().filter((each) => each.holder === holder).length;
    const isReserved =
      record?.holder === undefined && record?.bid !== undefined && record.bid.holder !== holder;
    const isTooMuch = this.load + clusterLoad(record ?? {}) > budget;
    return Math.max(
      Math.min(HANDICAP_MS * ours, MAX_HANDICAP_MS),
      isReserved ? RESERVED_MS : 0,
      isTooMuch ? OVER_BUDGET_MS : 0,
      this.#avoids(cluster) ? UNWANTED_MS : 0,
    );
  }

  /** Reports whether our lease is handed off to its bidder. One lease is handed off at a time. */
  gives(lease: Lease): boolean {
    if (!lease.bid || this.#giving !== undefined || !isWorthGiving(this.#records(), lease, lease.bid)) {
      return false;
    }
    this.#giving = lease.cluster;
    return true;
  }

  /** Returns the lease to request now, if any: one at a time, and only after all of them were seen. */
  wanted(clusters: number): Lease | undefined {
    const { holder, budget, stopwatch } = this.#options;
    const now = stopwatch();
    if (now - this.#startedMs < SETTLING_MS || this.#seen.size < clusters) return undefined;
    if (this.#requested && now - this.#requested.atMs < ANSWER_MS) return undefined;
    const lease = leaseToAskFor(this.#records(), holder, budget, (cluster) => this.#avoids(cluster));
    this.#requested = lease && { cluster: lease.cluster, atMs: now };
    return lease;
  }

  #avoids(cluster: ClusterName): boolean {
    return this.#options.stopwatch() < (this.#avoided.get(cluster) ?? 0);
  }

  #records(): readonly LeaseRecord[] {
    return [...this.#seen.values()].filter((record) => record !== undefined);
  }
}

/** Base load of a cluster, in nodes: its connections, its lease, its bookmarks. */
export const CLUSTER_LOAD = 100;

/** Clusters move only if the move reduces the busier relay's load by this fraction: nodes come and go. */
const WORTHWHILE = 0.1;

export const clusterLoad = ({ nodes = 0 }: Pick<LeaseRecord, 'nodes'>): number => CLUSTER_LOAD + nodes;

export const loadOf = (records: readonly LeaseRecord[], holder: string): number =>
  records.filter((record) => record.holder === holder).reduce((sum, record) => sum + clusterLoad(record), 0);

/** Reports whether a cluster should move between relays with these loads. Then the reverse move is never worthwhile. */
const isWorthMoving = (cluster: number, fromLoad: number, toLoad: number): boolean =>
  toLoad + cluster <= fromLoad * (1 - WORTHWHILE);

/**
 * Returns the lease to request from the busiest relay: the one that makes both loads most equal; never an avoided one.
 * `undefined`: the loads are even, or the capacity (in nodes) is used up.
 */
export function leaseToAskFor(
  records: readonly LeaseRecord[],
  me: string,
  budget: number,
  avoids: (cluster: ClusterName) => boolean = () => false,
): Lease | undefined {
  const mine = loadOf(records, me);
  const held = records.filter((record): record is Lease => record.holder !== undefined);
  const holders = [...new Set(held.map(({ holder }) => holder))]
    .filter((holder) => holder !== me)
    .map((holder) => ({ holder, load: loadOf(records, holder) }))
    .sort((a, b) => b.load - a.load);
  for (const { holder, load } of holders) {
    const unevenness = (lease: Lease) => Math.abs(load - mine - 2 * clusterLoad(lease));
    const [best] = held
      .filter((lease) => lease.holder === holder && lease.bid === undefined && !avoids(lease.cluster))
      .filter((lease) => mine + clusterLoad(lease) <= budget)
      .filter((lease) => isWorthMoving(clusterLoad(lease), load, mine))
      .sort((a, b) => unevenness(a) - unevenness(b));
    if (best) return best;
  }
  return undefined;
}

/** Reports whether a relay hands its lease off to the bidder: the loads may have changed since the bid. */
export const isWorthGiving = (records: readonly LeaseRecord[], lease: Lease, bid: LeaseRequest): boolean =>
  isWorthMoving(clusterLoad(lease), loadOf(records, lease.holder), bid.load);
