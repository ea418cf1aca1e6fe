import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';

/** Clusters that an act applies to. Absent: all clusters. */
interface OfClusters {
  readonly cluster?: ClusterName | undefined;
}

interface OfCluster {
  readonly cluster: ClusterName;
}

interface WithReason {
  readonly reason: string;
}

interface WithDuration extends WithReason {
  /** Absent: until an operator cancels the act. */
  readonly durationMs?: number | undefined;
}

/** An act of an operator that changes which pods are evicted. */
export type Act =
  | (OfClusters & WithDuration & { readonly kind: 'stop' })
  /** `id`: that of the stop of a cluster. Absent: the only one, or with no stop of its own, the stop of all clusters. */
  | (OfClusters & WithReason & { readonly kind: 'resume'; readonly id?: string | undefined })
  | (OfCluster & WithDuration & { readonly kind: 'hold'; readonly target: HoldTarget })
  | (OfCluster & WithReason & { readonly kind: 'release'; readonly id: string })
  /** Absent: the only scope that tripped. */
  | (OfCluster & WithReason & { readonly kind: 'release-guard'; readonly scope?: string | undefined })
  /** Retries failed evictions of all clusters, of one cluster, or of a node. */
  | (OfClusters & Partial<WithReason> & { readonly kind: 'retry'; readonly node?: NodeName | undefined })
  | (OfCluster & Partial<WithReason> & { readonly kind: 'apply-policy'; readonly text: string });
