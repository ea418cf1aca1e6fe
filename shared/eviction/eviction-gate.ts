import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Trip } from './policy.ts';

/** A gate that keeps a due pod from being evicted. */
export type EvictionGate =
  /** The cluster is only observed. Taintward reports the evictions that would have happened. */
  | { readonly kind: 'observe' }
  /** `id`: of a stop of a cluster that has several. */
  | {
      readonly kind: 'stopped';
      readonly scope: 'cluster' | 'fleet';
      readonly id?: string;
      readonly until?: EpochMs;
    }
  | { readonly kind: 'hold'; readonly id: string; readonly until?: EpochMs }
  /** Policy excludes the pod, or does not include it. */
  | (OfTaints & { readonly kind: 'excluded' })
  | (OfTaints & { readonly kind: 'guard' } & Pick<Trip, 'scope' | 'zone' | 'trippedAt'>)
  /** The node has the `unreachable` taint and renews its Lease, which has expired by `until` at the latest. */
  | (OfTaints & { readonly kind: 'node-alive'; readonly renewedAt: EpochMs; readonly until: EpochMs })
  /**
   * Policy permits no further pod of the workload (`kind/name`) until then. Without `count`, the replicas can't be
   * read.
   */
  | (OfTaints & {
      readonly kind: 'workload-limit';
      readonly workload: string;
      readonly count?: number;
      readonly windowMs: number;
    })
  /** A static pod: its kubelet recreated it after an eviction on this node, and would do so again. */
  | { readonly kind: 'recreated' };

/**
 * A gate that every due taint has, perhaps one from policy and another from the guard or the Lease. So any change of
 * these may open it.
 */
export interface OfTaints {
  /** Revision of the policy, and revision of the guard. */
  readonly revision: number;
  readonly guardRevision: number;
  /** When the first of these gates opens by itself. */
  readonly until?: EpochMs;
}

/** A gate that holds every due pod of a cluster. */
export type ClusterGate = Extract<EvictionGate, { readonly kind: 'observe' | 'stopped' }>;
