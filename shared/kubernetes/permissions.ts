import { isDeepStrictEqual } from 'node:util';
import type { Policy } from '#shared/eviction/policy.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { ApiError } from './http/api-error.ts';
import { NODE_LEASE_NAMESPACE } from './node-lease.ts';
import { WORKLOAD_PERMISSIONS } from './replicas.ts';
import { TAKEOVER_GROUP, TAKEOVER_NAME } from './takeover.ts';
import { PROOF_NODE } from './takeover-proof.ts';

/** Who can ask the API server what its own credentials may do (`SelfSubjectAccessReview`). */
export interface PermissionReview {
  /** Names the server in messages. */
  readonly host: string;
  /** Rejects with `ApiError`. */
  allowed(right: Permission): Promise<boolean>;
}

/** What the relay does to a cluster: it follows, and changes nothing. */
export const RELAY_PERMISSIONS: readonly Permission[] = [
  { verb: 'list', resource: 'nodes' },
  { verb: 'watch', resource: 'nodes' },
  { verb: 'list', resource: 'pods' },
  { verb: 'watch', resource: 'pods' },
];

/** What `evict` does to a cluster. Events are only ever created, never patched. */
export const EVICT_PERMISSIONS: readonly Permission[] = [
  { verb: 'get', resource: 'nodes' },
  { verb: 'get', resource: 'pods' },
  { verb: 'list', resource: 'pods' },
  { verb: 'delete', resource: 'pods' },
  { verb: 'patch', resource: 'pods/status' },
  { verb: 'create', resource: 'events' },
];

/** Without these, pods aren't evicted. Without permission to create Events, pods are evicted, but no Event reports it. */
export const EVICTING_PERMISSIONS: readonly Permission[] = EVICT_PERMISSIONS.filter(
  ({ resource }) => resource !== 'events',
);

/** What `evict` does besides where a policy says `method: evict`. */
export const EVICTION_API_PERMISSIONS: readonly Permission[] = [
  { verb: 'create', resource: 'pods/eviction' },
];

/** What `evict` does besides by a policy: for which of its settings, where the right to it is granted, and what comes of its lack. */
export interface NeededBy {
  readonly setting: string;
  readonly permissions: readonly Permission[];
  readonly grant: string;
  readonly lack: string;
}

/** What of it a policy asks for. */
export const permissionsNeededBy = ({
  method,
  maxEvictionsPerWorkload: limit,
}: Policy): readonly NeededBy[] => [
  ...(method.kind === 'evict' ? [BY_EVICTION_API] : []),
  ...(typeof limit?.count === 'string' ? [BY_REPLICAS] : []),
];

const BY_EVICTION_API: NeededBy = {
  setting: 'method: evict',
  permissions: EVICTION_API_PERMISSIONS,
  grant: 'cdk/rbac/eviction-api',
  lack: 'only pods of nodes that are down or gone are evicted there',
};

const BY_REPLICAS: NeededBy = {
  setting: 'maxEvictionsPerWorkload as a percentage',
  permissions: WORKLOAD_PERMISSIONS,
  grant: 'cdk/rbac/replicas',
  lack: 'pods of workloads wait there',
};

/** What the relay does besides where a cluster is taken over at its nodes: it renews that, and proves by dry runs that it works. */
export const TAKEOVER_PERMISSIONS: readonly Permission[] = [
  { verb: 'get', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'patch', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'create', resource: 'nodes', name: PROOF_NODE },
  { verb: 'patch', resource: 'nodes', name: PROOF_NODE },
];

/** What `evict` reads besides, where it may: without it, pods go although their node may be alive. */
export const NODE_LEASE_PERMISSION: Permission = {
  verb: 'get',
  resource: 'leases',
  group: 'coordination.k8s.io',
  namespace: NODE_LEASE_NAMESPACE,
};

/** What the service does to a cluster, and so the least that one identity for all of it needs. */
export const NEEDED_PERMISSIONS: readonly Permission[] = [
  ...RELAY_PERMISSIONS,
  ...EVICT_PERMISSIONS.filter((right) => !RELAY_PERMISSIONS.some((other) => isDeepStrictEqual(right, other))),
];

/** Which of the needed rights the credentials lack, as `verb resource name in namespace`. Rejects with `ApiError`. */
export async function missingPermissions(
  api: Pick<PermissionReview, 'allowed'>,
  needs: readonly Permission[],
): Promise<readonly string[]> {
  const answers = await Promise.all(needs.map((right) => api.allowed(right)));
  return needs.filter((_, index) => answers[index] !== true).map(permissionText);
}

/** A right as `verb resource name in namespace`, of which the last two may be missing. */
export const permissionText = ({
  verb,
  resource,
  name,
  namespace,
}: { readonly verb: string } & Pick<Permission, 'resource' | 'name' | 'namespace'>): string =>
  [
    ...[verb, resource],
    ...(name === undefined ? [] : [name]),
    ...(namespace === undefined ? [] : ['in', namespace]),
  ].join(' ');

/**
 * What to grant so that pods of nodes which are alive are not evicted, as one sentence; `undefined`: it is granted. Nothing else needs it.
 * Rejects with `ApiError`.
 */
export async function nodeLeaseHint(api: PermissionReview): Promise<string | undefined> {
  const [missing] = await missingPermissions(api, [NODE_LEASE_PERMISSION]);
  if (missing === undefined) return undefined;
  return `Grant ${missing} (cdk/rbac/evict). Otherwise, pods are evicted from unreachable nodes that may be alive.`;
}

/**
 * Makes sure that the cluster can be managed, or what of it needs these rights done, before anything relies on it. Rejects
 * with `ApiError`, one sentence: it cannot be reached, the credentials are refused, or these rights are missing (403).
 */
export async function preflight(
  api: PermissionReview,
  needs: readonly Permission[] = NEEDED_PERMISSIONS,
): Promise<void> {
  const missing = await missingPermissions(api, needs);
  if (missing.length === 0) return;
  throw new ApiError(
    `The credentials for ${api.host} lack rights: grant them in all namespaces ${missing.join(', ')}.`,
    403,
    'Forbidden',
  );
}
