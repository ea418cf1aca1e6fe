import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ClusterView, Subject } from './cluster-view.ts';

/** The queues of deltas, as log and metrics call them. */
export const DELTA_QUEUES = ['node-deltas', 'pod-deltas'] as const;
export type DeltaQueue = (typeof DELTA_QUEUES)[number];

/** The way from the relays of clusters to those who decide what their deltas mean. */
export interface Outbox {
  /**
   * Deltas of a cluster are sent from now on, whenever `canSend` allows it: it is asked right before. `told`: called after each
   * attempt, with an error when it failed.
   */
  open(
    cluster: ClusterName,
    view: ClusterView,
    canSend: () => boolean,
    told?: (queue: DeltaQueue, error?: unknown) => void,
  ): void;
  /** Notes of what there is something to tell; `wake`: of nodes where what is overdue is to be looked at at once. */
  mark(cluster: ClusterName, subjects: readonly Subject[], wake?: boolean): void;
  /** Sends what waits and may be sent. To be called also when a cluster may speak again. */
  send(): void;
  /** Forgets a cluster: another relay speaks for it now. What is on its way is told apart by its epoch. */
  dropCluster(cluster: ClusterName): void;
  /** Resolves once everything that may be sent is sent. */
  drained(): Promise<void>;
  /** Gives up what is not sent yet, and takes nothing any more; the next relay sends it anew. */
  stop(): void;
}
