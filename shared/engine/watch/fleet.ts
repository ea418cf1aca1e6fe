import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord } from '#shared/state/lease.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import { clusterLoad, isWorthGiving, leaseToAskFor, loadOf } from './rebalance.ts';

/** Per held lease, a relay lets others acquire a free lease first for this long, up to the maximum below. */
const HANDICAP_MS = 50;
export const MAX_HANDICAP_MS = 2_000;
/**
 * A relay at its capacity leaves a free lease to others for this long. Then it acquires the lease: late is better than
 * never.
 */
export const OVER_BUDGET_MS = 5_000;
/** A lease that was handed off to its bidder is reserved for that relay for this long. */
const RESERVED_MS = 5_000;
/**
 * A relay that hands a lease off because it is disconnected leaves the lease to others for this long, jittered by half.
 */
const AVOIDANCE_MS = 120_000;
/** A lease that no relay has acquired for this long has no other candidate than the relay that handed it off. */
const UNWANTED_MS = 10_000;
/** A new relay requests no leases for this long: it may replace another relay, whose clusters it gets anyway. */
const SETTLING_MS = 60_000;
/** A requested lease that hasn't come by then isn't coming. */
const ANSWER_MS = 20_000;

export interface FleetOptions {
  /** This relay's name in leases. */
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
  #asked: { readonly cluster: ClusterName; readonly atMs: number } | undefined;
  #giving: ClusterName | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#startedMs = options.stopwatch();
  }

  saw(cluster: ClusterName, record: LeaseRecord | undefined): void {
    this.#seen.set(cluster, record);
    const isOurs = record?.holder === this.#options.holder;
    if (isOurs && this.#asked?.cluster === cluster) this.#asked = undefined;
    if (!isOurs && this.#giving === cluster) this.#giving = undefined;
  }

  /** Leaves a cluster to others for a while, unless no other relay acquires its lease. */
  avoid(cluster: ClusterName): void {
    const durationMs = AVOIDANCE_MS * (0.5 + Math.random() / 2);
    this.#avoided.set(cluster, this.#options.stopwatch() + durationMs);
  }

  /** Forgets a cluster that is no longer followed. */
  forget(cluster: ClusterName): void {
    this.#seen.delete(cluster);
    this.#avoided.delete(cluster);
    if (this.#giving === cluster) this.#giving = undefined;
  }

  /** This relay's load, in nodes. */
  get load(): number {
    return loadOf(this.#records(), this.#options.holder);
  }

  /** Nodes by which the load exceeds the capacity. */
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

  /**
   * Returns the lease to request now, if any. Leases are requested one at a time, and only after all of them were seen.
   */
  wanted(clusters: number): Lease | undefined {
    const { holder, budget, stopwatch } = this.#options;
    const now = stopwatch();
    if (now - this.#startedMs < SETTLING_MS || this.#seen.size < clusters) return undefined;
    if (this.#asked && now - this.#asked.atMs < ANSWER_MS) return undefined;
    const lease = leaseToAskFor(this.#records(), holder, budget, (cluster) => this.#avoids(cluster));
    this.#asked = lease && { cluster: lease.cluster, atMs: now };
    return lease;
  }

  #avoids(cluster: ClusterName): boolean {
    return this.#options.stopwatch() < (this.#avoided.get(cluster) ?? 0);
  }

  #records(): readonly LeaseRecord[] {
    return [...this.#seen.values()].filter((record) => record !== undefined);
  }
}
