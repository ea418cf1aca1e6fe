import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A proof that evictions work, or the reason why there is no new one. */
export type Proof =
  /** The time at which evictions worked, by our clock. */
  { readonly asOf: EpochMs } | { readonly unproven: unknown };

/** Proves that evictions work in a cluster: that the processes that decide and evict there would carry them out. */
export interface Prover {
  /**
   * Takes some seconds at most, less once `signal` aborts. Called by the relay that holds the cluster's lease, for each
   * heartbeat. Rejects with the error that prevented the check.
   */
  prove(cluster: ClusterName, signal: AbortSignal): Promise<Proof>;
}
