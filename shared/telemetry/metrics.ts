import type { ClusterName } from '#shared/eviction/identity.ts';

/*
 * The names of our metrics, the same in Prometheus and in CloudWatch. The first two are the built-in controller's own,
 * so that dashboards keep working.
 */

/** Pods deleted. */
export const POD_DELETIONS = 'taint_eviction_controller_pod_deletions_total';
/** Seconds between a pod's deadline and its deletion. */
export const POD_DELETION_DURATION = 'taint_eviction_controller_pod_deletion_duration_seconds';
/** Requests of `evict` that an API server refused or did not answer. */
export const API_REFUSALS = 'taintward_api_refusals_total';
/** Looks at a node after which its API server counts as out of reach: it did not answer several calls in a row. */
export const OUT_OF_REACH = 'taintward_out_of_reach_total';
/** Looks at a node that failed and are tried again. */
export const EVICTION_RETRIES = 'taintward_eviction_retries_total';
/** Registered clusters that no relay speaks for. */
export const UNWATCHED_CLUSTERS = 'taintward_unwatched_clusters';
/** Seconds since a relay heard from the registered cluster that was not heard from for longest. */
export const UNHEARD_SECONDS = 'taintward_unheard_seconds';
/** Clusters with pods that must go and have not for more than ten minutes: the built-in controller does not evict there, and policy forbids it to us. */
export const NOBODY_EVICTS = 'taintward_nobody_evicts';
/** Nodes that a relay follows beyond its budget. */
export const OVER_BUDGET = 'taintward_relay_over_budget';
/** Trips of the guard that stand: what holds evictions in clusters, zones, or for what people tainted. */
export const GUARD_TRIPS = 'taintward_guard_trips';
/** Clusters taken over whose heartbeat is withheld: the built-in controller evicts there when it has lapsed. */
export const TAKEOVERS_WITHHELD = 'taintward_takeovers_withheld';
/** Evicted pods that terminate for more than a minute longer than their grace period. */
export const STUCK_PODS = 'taintward_stuck_pods';
/** Evictions that ended without their pods going: tried for days, or of a cluster that is not registered any more. */
export const GIVEN_UP = 'taintward_given_up_total';
/** Other installations that were seen to evict in a cluster of ours. */
export const RIVALS = 'taintward_rivals_total';
/** Failed attempts to handle a message of what is due, from its third receive on. */
export const MESSAGES_FAILING = 'taintward_messages_failing_total';
/** Seconds by which an API server's clock and ours differ; of relays, only beyond a second. */
export const CLOCK_SKEW = 'taintward_clock_skew_seconds';
/** Deltas that a queue did not take; they are sent again, as things are then. */
export const UNSENT_DELTAS = 'taintward_relay_deltas_unsent_total';
/** Deltas that a queue can never take. */
export const REFUSED_DELTAS = 'taintward_relay_deltas_refused_total';

/** What `evict` counts, of which cluster. */
export interface EvictionMetrics {
  /** A pod was deleted, `lateSeconds` after it fell due. */
  podDeleted(cluster: ClusterName, lateSeconds: number): void;
  /** An API server refused a request, or did not answer it. */
  requestRefused(cluster: ClusterName): void;
  /** After a look at a node its API server counts as out of reach. */
  outOfReach(cluster: ClusterName): void;
  /** A node's work failed and is tried again. */
  retried(cluster: ClusterName): void;
  /** So many evictions ended without their pods going. */
  gaveUp(cluster: ClusterName, evictions: number): void;
  /** Another installation was seen to evict in a cluster of ours. */
  rivalSeen(cluster: ClusterName): void;
  /** By how much an API server's clock and ours differ, either way. */
  clockSkewed(cluster: ClusterName, seconds: number): void;
  /** A message of what is due failed that was received three times or more. */
  messageFailing(): void;
  /** Writes what was counted, where that does not happen by itself. */
  flush?(): void;
}
