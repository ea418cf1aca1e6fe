import { defined } from '#shared/defined.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { missingPermissions } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { TAKEOVER_GROUP } from '#shared/kubernetes/takeover.ts';
import { PROOF_NODE } from '#shared/kubernetes/takeover-proof.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';

/** A rule of a ClusterRole. */
interface Rule {
  readonly apiGroups: readonly [string];
  readonly resources: readonly string[];
  /** Absent: all objects. */
  readonly resourceNames?: readonly [string];
  readonly verbs: readonly Permission['verb'][];
}

const MANAGE = ['get', 'create', 'patch', 'delete'] as const;

/** Permissions that an operator needs in a cluster for `taintward takeover`. See cdk/rbac/operators. */
export const TAKEOVER_RULES: readonly Rule[] = [
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: MANAGE },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'],
    verbs: MANAGE,
  },
  {
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['clusterroles', 'clusterrolebindings'],
    verbs: MANAGE,
  },
  { apiGroups: [TAKEOVER_GROUP], resources: ['takeovers'], verbs: MANAGE },
  { apiGroups: [''], resources: ['nodes'], verbs: ['list'] },
  { apiGroups: [''], resources: ['nodes'], resourceNames: [PROOF_NODE], verbs: ['create', 'patch'] },
];

/** Returns the permissions that the credentials lack, as `verb resource name`. */
export async function missingTakeoverPermissions({ connection }: ClusterObjects): Promise<readonly string[]> {
  const permissions = TAKEOVER_RULES.flatMap(
    ({ apiGroups: [group], resources, resourceNames: [name] = [undefined], verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb, ...defined({ name }) }))),
  );
  const api = new RestApi(connection);
  return missingPermissions(api, permissions).finally(() => api.close());
}
