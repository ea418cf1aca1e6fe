import type { ClusterAccess } from '#shared/access/registered-clusters.ts';
import type { Timers } from '#shared/engine/timers.ts';
import type { ClusterName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Partition } from '#shared/eviction/records.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { RulesReader } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { LaterEvents } from './later-events.ts';

/** Keeps a copy of evictions of a node that failed, with the error. */
export type SetAside = (ref: NodeRef, pods: readonly PodUid[], reason: string) => Promise<void>;

export interface PassDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: EvictionMetrics;
  /** Reads a cluster's rules, which together with the look at its node are at most a second old. */
  readonly rules: RulesReader;
  readonly permits: Permits;
  readonly timers: Timers;
  /** Keeps a copy of failed evictions for an operator to redrive. Absent: the store alone keeps them. */
  readonly setAside?: SetAside;
}

/** One pass over a node: its partition as loaded at a time, the cluster, and the ports. */
export interface PassScope extends PassDeps {
  readonly partition: Partition;
  readonly loadedAt: EpochMs;
  readonly api: KubernetesApi;
}

/** Notes proofs that evictions work, for a relay in another process. Never rejects. */
export interface Proofs {
  /** A probe was carried out. `failure`: why evictions don't work; `undefined`: they do. */
  probed(cluster: ClusterName, sentAt: EpochMs, failure: string | undefined): Promise<void>;
  /** A pass was complete. */
  passed(cluster: ClusterName): Promise<void>;
}

export interface EvictDeps extends PassDeps {
  readonly clusters: ClusterAccess;
  /** Absent: the relay is in this process, and calls `whyNotEvicting` for a proof. */
  readonly proofs?: Proofs;
  /**
   * Posts Events while other work continues. Absent: a pass ends with its Events, as a function is frozen afterwards.
   */
  readonly laterEvents?: Pick<LaterEvents, 'post'>;
}
