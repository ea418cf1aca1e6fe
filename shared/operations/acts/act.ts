import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import { selectorText } from '#shared/eviction/selectors.ts';

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

interface Acts {
  readonly stop: OfClusters & WithDuration;
  /** `id`: that of the stop of a cluster. Absent: the only one, or with no stop of its own, the stop of all clusters. */
  readonly resume: OfClusters & WithReason & { readonly id?: string | undefined };
  /** `others`: further targets, each of which gets a hold, too. */
  readonly hold: OfCluster &
    WithDuration & { readonly target: HoldTarget; readonly others?: readonly HoldTarget[] | undefined };
  readonly release: OfCluster &
    WithReason & { readonly id: string; readonly others?: readonly string[] | undefined };
  /** Absent: the only scope that tripped. */
  readonly 'release-guard': OfCluster & WithReason & { readonly scope?: string | undefined };
  /** `owner`: what alone may change the policy from then on. Absent: commands. */
  readonly 'apply-policy': OfCluster &
    Partial<WithReason> & { readonly text: string; readonly owner?: string | undefined };
  readonly 'withdraw-policy': OfCluster & Partial<WithReason>;
  /** Lets commands change a policy that a file or an object owned. */
  readonly 'release-policy': OfCluster & Partial<WithReason>;
  /** Retries failed evictions of all clusters, of one cluster, or of a node. */
  readonly retry: OfClusters & Partial<WithReason> & { readonly node?: NodeName | undefined };
}

/** An act of an operator that changes which pods are evicted. */
export type Act<Kind extends keyof Acts = keyof Acts> = {
  readonly [Each in Kind]: { readonly kind: Each } & Acts[Each];
}[Kind];

/** Acts that change rules. */
export type RulesAct<Kind extends RulesActKind = RulesActKind> = Act<Kind>;
export type RulesActKind = Exclude<keyof Acts, 'retry'>;

/** The reason in the audit log of a stop without one: an emergency doesn't wait for a reason. */
export const NO_REASON = 'no reason given';

export const place = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;

export function targetText(target: HoldTarget): string {
  switch (target.kind) {
    case 'pod':
      return `pod ${target.namespace}/${target.name}`;
    case 'workload':
      return `workload ${target.namespace}/${target.owner.kind}/${target.owner.name}`;
    case 'node':
      return `node ${target.node}`;
    case 'namespace':
      return `namespace ${target.namespace}`;
    case 'labels':
      return `pods with labels ${selectorText(target.labels)}${target.namespace === undefined ? '' : ` in namespace ${target.namespace}`}`;
    case 'zone':
      return `zone ${target.zone}`;
    default:
      return target satisfies never;
  }
}
