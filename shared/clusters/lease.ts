import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';

/** A cluster's lease, held by one relay at a time. */
export interface Lease {
  readonly cluster: ClusterName;
  readonly holder: string;
  /** Grows by one with every take-over, never returns: the fencing token in every delta's version. */
  readonly epoch: number;
  readonly expiresAt: EpochMs;
}

/** Who may speak for a cluster. */
export interface Leases {
  /**
   * Takes the lease if it is free, expired at `now`, or held by nobody alive, with the next epoch.
   * `undefined`: another holder has it. Taking it again as the same holder is a take-over too: a relay that
   * restarted under its old name must fence off its former self.
   */
  acquire(cluster: ClusterName, holder: string, now: EpochMs, ttlMs: number): Promise<Lease | undefined>;
  /** Extends a lease that is still ours (same holder and epoch). `undefined`: it was lost; stop at once. */
  renew(lease: Lease, now: EpochMs, ttlMs: number): Promise<Lease | undefined>;
  /** Gives a lease up so that another relay need not wait; keeps the epoch. Does nothing when it was lost. */
  release(lease: Lease): Promise<void>;
}

/** Who sees which clusters are spoken for. */
export interface LeaseReader {
  /** Those of the clusters whose lease somebody holds and has not let expire by `now`. */
  held(clusters: readonly ClusterName[], now: EpochMs): Promise<ReadonlySet<ClusterName>>;
}
