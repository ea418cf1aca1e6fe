import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Trip } from './policy.ts';

/** What keeps a pod that is due from being evicted. */
export type EvictionGate =
  /** The cluster is only observed: so it is told what would have happened. */
  | { readonly kind: 'observe' }
  | { readonly kind: 'paused'; readonly until?: EpochMs }
  | { readonly kind: 'stopped'; readonly scope: 'cluster' | 'fleet'; readonly until?: EpochMs }
  | { readonly kind: 'hold'; readonly id: string; readonly until?: EpochMs }
  /** Policy excludes it, or does not name it. */
  | (OfTaints & { readonly kind: 'excluded' })
  | (OfTaints & { readonly kind: 'guard'; readonly scope: Trip['scope']; readonly trippedAt: EpochMs })
  /** Its node is called unreachable, and renews its Lease. `until`: the Lease has expired by then at the latest. */
  | (OfTaints & { readonly kind: 'node-alive'; readonly renewedAt: EpochMs; readonly until: EpochMs })
  /**
   * As many pods of its workload (`kind/name`) went within the time as policy permits. `until`: then it asks again. Without `count` nobody
   * may count the replicas by which policy limits them.
   */
  | (OfTaints & {
      readonly kind: 'workload-limit';
      readonly workload: string;
      readonly count?: number;
      readonly windowMs: number;
    });

/**
 * What is said of each taint that makes the pod go, of one by policy and of another by the guard or the node's Lease perhaps: so it
 * may be over with any change of these.
 */
export interface OfTaints {
  /** Of the policy, and of the guard. */
  readonly revision: number;
  readonly guardRevision: number;
  /** When the first of it ends by itself. */
  readonly until?: EpochMs;
}

/** What keeps every pod of a cluster that is due. */
export type ClusterGate = Extract<EvictionGate, { readonly kind: 'observe' | 'paused' | 'stopped' }>;
