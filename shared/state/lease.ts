import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { cached } from '#shared/time/cached.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fault } from './fault.ts';

/**
 * A lease that is not renewed for this long is free. By whose clock: its holder counts from before it asked for the
 * renewal, any other from when it saw it. So the holder is done before anybody takes over, however wrong clocks are.
 */
export const LEASE_TTL_MS = 10_000;

/** An API server sends a bookmark every minute: this long without a word, its cluster is out of reach. */
export const DISCONNECTED_AFTER_MS = 120_000;

/** Another relay's wish to have a lease. */
export interface LeaseRequest {
  readonly holder: string;
  /** What that relay has on its hands, in nodes. */
  readonly load: number;
}

/** A bid as it is stored. */
export const leaseRequestSchema: z.ZodType<LeaseRequest> = z.object({
  holder: z.string(),
  load: z.number().nonnegative(),
});

/** A cluster's lease, as it stands in the table. */
export interface LeaseRecord {
  readonly cluster: ClusterName;
  /** Absent: it was released, and is free. */
  readonly holder?: string;
  /**
   * The fencing token in every delta's version: grows with every take-over and never returns, even where the table
   * was made anew, because it is never below the Unix time in seconds.
   */
  readonly epoch: number;
  /** How often it was renewed in this epoch: two looks that find the same one find a lease that nobody renewed. */
  readonly renewals: number;
  /** When it was taken or last renewed, by its holder's clock. Compared with `heardAt`, never with another clock. */
  readonly renewedAt: EpochMs;
  /** When a relay last heard from the cluster, by that relay's clock; absent: none ever did. */
  readonly heardAt?: EpochMs;
  /** How many nodes the cluster had when a relay last knew them; absent: none ever did. */
  readonly nodes?: number;
  /** The release of the relay that holds it; absent: nobody does, or one that does not say. */
  readonly version?: string;
  /** Whether that relay has stopped asking the cluster's API server for some seconds, because it does not answer. */
  readonly breakerOpen?: boolean;
  /** What that relay finds wrong with the cluster. Absent: nobody holds the lease, it was just taken, or that release reports no faults. */
  readonly faults?: readonly Fault[];
  /** Who asks for it; stays when it is released, and ends when it is taken. */
  readonly bid?: LeaseRequest;
  /**
   * Whose messages speak for the cluster: who sends for its holder, and for those before it, as the queue names senders.
   * Absent: the holder does not know how it is named, or its queue names nobody.
   */
  readonly senders?: readonly string[];
}

/** A lease that somebody holds. */
export interface Lease extends LeaseRecord {
  readonly holder: string;
}

/** What a holder says of itself and the cluster as it renews; what it does not know stays as it was. */
export interface LeaseReport
  extends Pick<LeaseRecord, 'renewedAt' | 'heardAt' | 'nodes' | 'breakerOpen' | 'faults'> {
  /** Ends the bid that there is. */
  readonly declines?: true;
}

/** Who may speak for a cluster. Holders are told apart by names that are never used twice. */
export interface Leases {
  /**
   * A cluster's lease; `undefined`: it was never taken. `mayLag`: as it was a moment ago will do, at half the price. Who waits for it
   * may ask so: of a lease that is not as it was seen, nothing is taken.
   */
  look(cluster: ClusterName, options?: { readonly mayLag?: boolean }): Promise<LeaseRecord | undefined>;
  /**
   * Takes a lease with the next epoch, for a relay of this release, if it still is exactly what a look found. `undefined`: it was taken, renewed or
   * released since. Whether it is free, or its holder dead, is for the caller to know.
   */
  take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined>;
  /** Keeps a lease that is still ours (same holder and epoch). `undefined`: it was lost. */
  renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined>;
  /** Asks a lease's holder for it, in place of who asked before. Does nothing when it has another holder by now. */
  bid(lease: Lease, bid: LeaseRequest): Promise<void>;
  /** Says which evicted pods do not leave, in place of what was said before. Does nothing when the lease was lost. */
  reportStuck(lease: Lease, pods: readonly StuckPod[]): Promise<void>;
  /** What the last relay said of that. */
  stuck(cluster: ClusterName): Promise<readonly StuckPod[]>;
  /** Gives a lease up so that another relay need not wait; keeps the epoch. Does nothing when it was lost. */
  release(lease: Lease): Promise<void>;
}

/** The epoch of a lease that is taken now and was last taken under the epoch `stored`. */
export const nextEpoch = (stored: number | undefined, now: EpochMs): number =>
  Math.max((stored ?? 0) + 1, Math.floor(now / 1000));

/** A lease as somebody sees it, and since when by that one's stopwatch. */
export interface Sighting {
  readonly record: LeaseRecord | undefined;
  readonly since: number;
}

/** What a look at `at`, by the onlooker's stopwatch, adds to what it saw before. */
export const sighting = (
  before: Sighting | undefined,
  record: LeaseRecord | undefined,
  at: number,
): Sighting => ({ record, since: before && isSameLease(before.record, record) ? before.since : at });

/** Whether nobody took, renewed or released a lease between two looks. */
export const isSameLease = (one: LeaseRecord | undefined, other: LeaseRecord | undefined): boolean =>
  one?.holder === other?.holder && one?.epoch === other?.epoch && one?.renewals === other?.renewals;

/** Who sees which clusters are spoken for, and under which epoch. */
export interface LeaseReader {
  /** The leases of those of the clusters that have one; one that cannot be read is left out. */
  lookAtAll(clusters: readonly ClusterName[]): Promise<readonly LeaseRecord[]>;
  /** Under which epoch a cluster's lease was last taken, whether or not it is still held; `undefined`: never. */
  epoch(cluster: ClusterName): Promise<number | undefined>;
}

/** For how long what was read of a lease is relied on. */
const READ_MAX_AGE_MS = 1_000;

/** Reads of each cluster's lease at most once a second. What it returns rejects as `read` does. */
export const onceASecond = <T>(
  read: (cluster: ClusterName) => Promise<T>,
  clock: Clock,
): ((cluster: ClusterName) => Promise<T>) => cached(READ_MAX_AGE_MS, read, clock);

/** Reads the epochs of leases, each at most once a second. What it returns rejects with `StoreError`. */
export const leaseEpochs = (leases: Pick<LeaseReader, 'epoch'>, clock: Clock): LeaseReader['epoch'] =>
  onceASecond((cluster) => leases.epoch(cluster), clock);
