import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A proof that evictions work, or why there is none that is new. */
export type Proof =
  /** They worked at this time, by our clock. */
  { readonly asOf: EpochMs } | { readonly unproven: unknown };

/** Proves that evictions work in a cluster: that who decides and who evicts there would carry them out. */
export interface Prover {
  /**
   * Takes some seconds at most, less once `signal` aborts. Called by the relay that holds the cluster's lease, for each heartbeat. Rejects with
   * what kept it from finding out.
   */
  prove(cluster: ClusterName, signal: AbortSignal): Promise<Proof>;
}
