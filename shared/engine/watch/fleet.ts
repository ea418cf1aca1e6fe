import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord } from '#shared/state/lease.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import { clusterLoad, isWorthGiving, leaseToAskFor, loadOf } from './rebalance.ts';

/** For each lease it holds a relay lets others go first for so long when another is free, but no longer than this. */
const HANDICAP_MS = 50;
export const MAX_HANDICAP_MS = 2_000;
/** A relay whose budget is used up leaves a free lease to others for so long. Then it takes it: late is better than never. */
export const OVER_BUDGET_MS = 5_000;
/** A lease that was given to the relay that asked for it is left to that one for so long. */
const RESERVED_MS = 5_000;
/** For so long, jittered by half, who gave a lease up because it heard nothing leaves it to others. */
const AVOIDANCE_MS = 120_000;
/** What nobody has taken for so long, nobody but who gave it up is there to take. */
const UNWANTED_MS = 10_000;
/** A relay that is new asks for nothing for so long: it may replace another, whose clusters it gets anyway. */
const SETTLING_MS = 60_000;
/** What was asked for and has not come by then is not coming. */
const ANSWER_MS = 20_000;

export interface FleetOptions {
  /** This relay's name in leases. */
  readonly holder: string;
  /** How much it takes on while others are there to take the rest, in nodes. */
  readonly budget: number;
  readonly stopwatch: Stopwatch;
}

/** The leases of all clusters, as this relay's keepers see them, and what its share of them is. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #startedMs: number;
  /** By cluster; `undefined`: looked at and never taken. */
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

  /** Leaves a cluster to others for a while, unless nobody else takes it. */
  avoid(cluster: ClusterName): void {
    const durationMs = AVOIDANCE_MS * (0.5 + Math.random() / 2);
    this.#avoided.set(cluster, this.#options.stopwatch() + durationMs);
  }

  /** The cluster is not followed any more. */
  forget(cluster: ClusterName): void {
    this.#seen.delete(cluster);
    this.#avoided.delete(cluster);
    if (this.#giving === cluster) this.#giving = undefined;
  }

  /** What this relay has on its hands, in nodes. */
  get load(): number {
    return loadOf(this.#records(), this.#options.holder);
  }

  /** By how many nodes that exceeds the budget. */
  get excess(): number {
    return Math.max(0, this.load - this.#options.budget);
  }

  /** For how long this relay lets others go first when the cluster's lease is free, in ms. */
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

  /** Whether our lease goes to who bids for it; one goes at a time. */
  gives(lease: Lease): boolean {
    if (!lease.bid || this.#giving !== undefined || !isWorthGiving(this.#records(), lease, lease.bid)) {
      return false;
    }
    this.#giving = lease.cluster;
    return true;
  }

  /** The lease to bid for now, if any; it is asked for one at a time, and only by who has seen all of them. */
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
