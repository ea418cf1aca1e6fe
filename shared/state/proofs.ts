import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface StoredProofs {
  /** The probe that was processed last, identified by the time at which its relay sent it. */
  readonly probe?: {
    readonly sentAt: EpochMs;
    /** Why evictions don't work; absent: they do. */
    readonly failure?: string;
  };
  /** Grows with each complete pass over due pods. */
  readonly passes: number;
}

/** Proofs that evictions work, and traces of probes. Every method rejects with `StoreError`. */
export interface ProofStore {
  /** Records that a probe was processed. `sentAt`: by its relay's clock. `failure`: why evictions don't work. */
  notedProbe(cluster: ClusterName, sentAt: EpochMs, now: EpochMs, failure?: string): Promise<void>;
  notedPass(cluster: ClusterName, now: EpochMs): Promise<void>;
  /** Records that the delta function forwarded a probe to `evict`. */
  notedDelta(cluster: ClusterName, sentAt: EpochMs, now: EpochMs): Promise<void>;
  read(cluster: ClusterName): Promise<StoredProofs>;
  /** The sending time, by its relay's clock, of the probe that the delta function forwarded last. */
  tracedAt(cluster: ClusterName): Promise<EpochMs | undefined>;
}
