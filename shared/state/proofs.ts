import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** What is stored of the proofs that evictions work in a cluster. */
export interface StoredProofs {
  /** The probe that was carried out last, by the time at which its relay sent it. */
  readonly probe?: {
    readonly sentAt: EpochMs;
    /** Why evictions don't work; absent: they do. */
    readonly failure?: string;
  };
  /** Grows with the complete passes of evictions. */
  readonly passes: number;
}

/** Notes what proves that evictions work. Every method rejects with `StoreError`. */
export interface ProofNotes {
  /** A probe was carried out, sent at `sentAt` by its relay's clock. `failure`: why evictions don't work. */
  notedProbe(cluster: ClusterName, sentAt: EpochMs, now: EpochMs, failure?: string): Promise<void>;
  /** A pass over a node's due pods was complete. */
  notedPass(cluster: ClusterName, now: EpochMs): Promise<void>;
}

/** Notes that who decides sent a probe on to who evicts. Rejects with `StoreError`. */
export interface ProbeTrace {
  notedDelta(cluster: ClusterName, sentAt: EpochMs, now: EpochMs): Promise<void>;
}

/** Reads all of that. Every method rejects with `StoreError`. */
export interface ProofReader {
  read(cluster: ClusterName): Promise<StoredProofs>;
  /** The probe that who decides sent on last, of those that leave a trace, by the time at which its relay sent it. */
  tracedAt(cluster: ClusterName): Promise<EpochMs | undefined>;
}
