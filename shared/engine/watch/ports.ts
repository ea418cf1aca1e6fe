import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterView, Subject } from './cluster-view.ts';

/** The queues of deltas, by their names in the log and in metrics. */
export const DELTA_QUEUES = ['node-deltas', 'pod-deltas'] as const;
export type DeltaQueue = (typeof DELTA_QUEUES)[number];

/** The path from the relays of clusters to the processes that evaluate their deltas. */
export interface Outbox {
  /** Sends a cluster's deltas whenever `canSend`, checked before each send, allows it. `onSent`: after each attempt. */
  open(
    cluster: ClusterName,
    view: ClusterView,
    canSend: () => boolean,
    onSent?: (queue: DeltaQueue, error?: unknown) => void,
  ): void;
  /** Marks subjects for sending; `wake`: overdue evictions on these nodes are checked immediately. */
  mark(cluster: ClusterName, subjects: readonly Subject[], wake?: boolean): void;
  /** Sends the pending deltas that may be sent. Also to be called when a cluster's deltas may be sent again. */
  send(): void;
  /** Forgets a cluster whose lease another relay holds now. The epoch distinguishes the deltas that are in transit. */
  dropCluster(cluster: ClusterName): void;
  drained(): Promise<void>;
  /** Drops unsent deltas and accepts no more; the next relay sends them again. */
  stop(): void;
}

/** A proof that evictions work, or the reason why there is no new one. */
export type Proof =
  /** The time at which evictions worked, by our clock. */
  { readonly asOf: EpochMs } | { readonly unproven: unknown };

/** Proves that evictions work in a cluster: that the processes that decide and evict there would carry them out. */
export interface Prover {
  /**
   * Takes some seconds at most, less once `signal` aborts. Called by the lease's holder for each heartbeat. Rejects
   * with the error that prevented the check.
   */
  prove(cluster: ClusterName, signal: AbortSignal): Promise<Proof>;
}
