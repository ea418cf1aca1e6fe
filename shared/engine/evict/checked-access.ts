import { type ClusterAccess, UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { type ClusterName, sameClusterText } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import {
  missingPermissions,
  type PermissionReview,
  permissionsNeededBy,
} from '#shared/kubernetes/permissions.ts';
import type { LeaseRecord } from '#shared/state/lease.ts';
import { Age } from '#shared/time/age.ts';
import type { PassDeps } from './ports.ts';

const LOG_AGAIN_MS = 10 * 60_000;
/** Delay before a cluster that did not answer is asked again. */
const ASK_AGAIN_MS = 60_000;

export interface CheckedAccessDeps extends Pick<PassDeps, 'rules' | 'clock' | 'log'> {
  readonly clusters: { api(cluster: ClusterName): Promise<KubernetesApi & PermissionReview> };
  /** Reads a cluster's lease; it may be a second old. */
  readonly lease: (cluster: ClusterName) => Promise<Pick<LeaseRecord, 'sameAs'> | undefined>;
}

interface Checked {
  readonly revision: number;
  readonly age: Age;
  readonly lastsMs: number;
}

/**
 * Access to clusters. Checks permissions that a policy needs beyond the usual ones, once for each policy, and logs
 * missing ones before the first eviction fails by them. Rejects with `UnknownClusterError`, too, if the cluster is managed
 * under another name, by that name's rules.
 */
export function checkedAccess({ clusters, lease, rules, clock, log }: CheckedAccessDeps): ClusterAccess {
  const checked = new Map<ClusterName, Checked>();

  /** Never rejects: the caller that needs the cluster or the rules reports their errors. */
  const check = async (cluster: ClusterName, api: PermissionReview): Promise<void> => {
    try {
      const { policy, policyRevision: revision } = await rules(cluster);
      const permissions = permissionsNeededBy(policy);
      if (permissions.length === 0) {
        checked.delete(cluster);
        return;
      }
      const before = checked.get(cluster);
      if (before?.revision === revision && before.age.atMostMs < before.lastsMs) return;
      const age = new Age(clock);
      checked.set(cluster, { revision, age, lastsMs: ASK_AGAIN_MS });
      let lastsMs = Number.POSITIVE_INFINITY;
      for (const { permissions: needed, setting, grant, lack } of permissions) {
        const missing = await missingPermissions(api, needed);
        if (missing.length === 0) continue;
        lastsMs = LOG_AGAIN_MS;
        const error = `The policy sets ${setting}, but the credentials for ${api.host} lack the permission to ${missing.join(', ')}: grant it (${grant}). Until then, ${lack}.`;
        log.error('policy.permission-missing', { cluster, error });
      }
      checked.set(cluster, { revision, age, lastsMs });
    } catch {
      // The check is repeated later.
    }
  };

  return {
    async api(cluster) {
      const [api, { sameAs } = {}] = await Promise.all([clusters.api(cluster), lease(cluster)]);
      if (sameAs !== undefined) throw new UnknownClusterError(sameClusterText(cluster, sameAs));
      await check(cluster, api);
      return api;
    },
  };
}
