import type { ClusterName } from '#shared/eviction/identity.ts';

/*
 * The names of our metrics, the same in Prometheus and in CloudWatch. The first two are the built-in controller's own,
 * so that dashboards keep working.
 */

/** Deleted pods. */
export const POD_DELETIONS = 'taint_eviction_controller_pod_deletions_total';
/** Seconds between a pod's deadline and its deletion. */
export const POD_DELETION_DURATION = 'taint_eviction_controller_pod_deletion_duration_seconds';
/** Requests of `evict` that an API server rejected or did not answer. */
export const API_REFUSALS = 'taintward_api_request_errors_total';
/** Evaluations of a node after which its API server counts as unreachable, because several calls in a row got no answer. */
export const OUT_OF_REACH = 'taintward_api_server_unreachable_total';
/** Failed evaluations of a node. They are retried. */
export const EVICTION_RETRIES = 'taintward_eviction_retries_total';
/** Registered clusters without a relay that holds their lease. */
export const UNWATCHED_CLUSTERS = 'taintward_unwatched_clusters';
/** Seconds since the last contact with the registered cluster that has been disconnected longest. */
export const LAST_CONTACT_AGE = 'taintward_cluster_last_contact_age_seconds';
/** Clusters with pods that are more than ten minutes overdue, where the built-in controller does not evict and the policy forbids Taintward to evict. */
export const NOBODY_EVICTS = 'taintward_cluster_no_eviction_controller';
/** Nodes that a relay follows beyond its capacity. */
export const OVER_BUDGET = 'taintward_relay_nodes_over_capacity';
/** Active trips of guards, which hold evictions in clusters, in zones, or for custom taints. */
export const GUARD_TRIPS = 'taintward_guard_active_trips';
/** Clusters whose takeover heartbeat is suspended. After its timeout, the built-in controller evicts there. */
export const TAKEOVERS_WITHHELD = 'taintward_takeover_heartbeat_suspended';
/** Evicted pods that are stuck terminating for more than a minute after their grace period. */
export const STUCK_PODS = 'taintward_stuck_pods';
/** Evictions that failed, with all retries exhausted or after their cluster was removed from the registry. */
export const GIVEN_UP = 'taintward_eviction_failures_total';
/** Other installations that were observed evicting in a cluster of this one. */
export const RIVALS = 'taintward_conflicting_installations_total';
/** Failed attempts to process a message of due evictions, from its third receive on. */
export const MESSAGES_FAILING = 'taintward_messages_failing_total';
/** Clock skew of an API server, in seconds; relays report it beyond a second only. */
export const CLOCK_SKEW = 'taintward_clock_skew_seconds';
/** Failed attempts to send a delta. Failed deltas are retried. */
export const UNSENT_DELTAS = 'taintward_relay_delta_send_failures_total';
/** Deltas that a queue rejected permanently. */
export const REFUSED_DELTAS = 'taintward_relay_deltas_rejected_total';

/** The metrics of `evict`. */
export type EvictionMetric =
  | typeof POD_DELETIONS
  | typeof POD_DELETION_DURATION
  | typeof API_REFUSALS
  | typeof OUT_OF_REACH
  | typeof EVICTION_RETRIES
  | typeof GIVEN_UP
  | typeof RIVALS
  | typeof MESSAGES_FAILING
  | typeof CLOCK_SKEW;

/** Where metrics are counted. */
export interface MetricSink<Name extends string = string> {
  /** Adds to a counter, or takes a measured value. */
  put(name: Name, value: number, cluster?: ClusterName): void;
  /** Writes the counts, if that doesn't happen automatically. */
  flush?(): void;
}

export type EvictionMetrics = MetricSink<EvictionMetric>;
