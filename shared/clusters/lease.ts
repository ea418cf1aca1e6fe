import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';

/** A cluster's lease, held by one relay at a time. */
export interface Lease {
  readonly cluster: ClusterName;
  readonly holder: string;
  /**
   * The fencing token in every delta's version: grows with every take-over and never returns, even where the table
   * was made anew, because it is never below the Unix time in seconds.
   */
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

/** The epoch of a lease that is taken now and was last taken under the epoch `stored`. */
export const nextEpoch = (stored: number | undefined, now: EpochMs): number =>
  Math.max((stored ?? 0) + 1, Math.floor(now / 1000));

/** Who sees which clusters are spoken for, and under which epoch. */
export interface LeaseReader {
  /** Those of the clusters whose lease somebody holds and has not let expire by `now`. */
  held(clusters: readonly ClusterName[], now: EpochMs): Promise<ReadonlySet<ClusterName>>;
  /** Under which epoch a cluster's lease was last taken, whether or not it is still held; `undefined`: never. */
  epoch(cluster: ClusterName): Promise<number | undefined>;
}

/** For how long an epoch that was read is relied on. */
const EPOCH_MAX_AGE_MS = 1_000;

/** Reads the epochs of leases, each at most once a second. What it returns rejects with `StoreError`. */
export function leaseEpochs(leases: Pick<LeaseReader, 'epoch'>, clock: Clock): LeaseReader['epoch'] {
  const known = new Map<
    ClusterName,
    { readonly askedAt: EpochMs; readonly epoch: Promise<number | undefined> }
  >();
  return async (cluster) => {
    const askedAt = clock.now();
    const last = known.get(cluster);
    if (last && askedAt - last.askedAt < EPOCH_MAX_AGE_MS) return last.epoch;
    const epoch = leases.epoch(cluster);
    known.set(cluster, { askedAt, epoch });
    epoch.catch(() => known.delete(cluster));
    return epoch;
  };
}
