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
/** Messages of `evictions-due` whose work failed and is tried again. */
export const EVICTION_RETRIES = 'taintward_eviction_retries_total';
/** Registered clusters that no relay speaks for. */
export const UNWATCHED_CLUSTERS = 'taintward_unwatched_clusters';
