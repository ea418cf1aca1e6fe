import { isDeepStrictEqual } from 'node:util';
import type { Policy } from '#shared/eviction/policy.ts';
import { isPattern } from '#shared/eviction/selectors.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { ApiError } from './http/api-error.ts';
import { NODE_LEASE_NAMESPACE } from './node-lease.ts';
import { WORKLOAD_PERMISSIONS } from './replicas.ts';
import { TAKEOVER_GROUP, TAKEOVER_NAME } from './takeover.ts';
import { PROOF_NODE } from './takeover-proof.ts';

/** A client that asks the API server which permissions its own credentials have (`SelfSubjectAccessReview`). */
export interface PermissionReview {
  /** The server's name in messages. */
  readonly host: string;
  /** Rejects with `ApiError`. */
  allowed(right: Permission): Promise<boolean>;
}

/** A permission that may be needed in some namespaces only; `namespaces` absent: as the permission says. */
export interface Need extends Permission {
  readonly namespaces?: readonly string[];
}

/** Permissions of the relay in a cluster: it follows objects, and changes nothing. */
export const RELAY_PERMISSIONS: readonly Permission[] = [
  { verb: 'list', resource: 'nodes' },
  { verb: 'watch', resource: 'nodes' },
  { verb: 'list', resource: 'pods' },
  { verb: 'watch', resource: 'pods' },
];

/** Permissions of `evict` in a cluster. Events are only ever created, never patched. */
export const EVICT_PERMISSIONS: readonly Permission[] = [
  { verb: 'get', resource: 'nodes' },
  { verb: 'get', resource: 'pods' },
  { verb: 'list', resource: 'pods' },
  { verb: 'delete', resource: 'pods' },
  { verb: 'patch', resource: 'pods/status' },
  { verb: 'create', resource: 'events' },
];

/** Reports whether pods aren't evicted without a permission. Without permission to create Events, they are. */
export const isRequired = ({ resource }: Permission): boolean => resource !== 'events';

/** Permissions without which pods aren't evicted. */
export const EVICTING_PERMISSIONS: readonly Permission[] = EVICT_PERMISSIONS.filter(isRequired);

/** Additional permissions of `evict` for policies with `method: evict`. */
export const EVICTION_API_PERMISSIONS: readonly Permission[] = [
  { verb: 'create', resource: 'pods/eviction' },
];

/** Additional permissions for a policy setting, the manifest that grants them, and what their lack means. */
export interface NeededBy {
  readonly setting: string;
  readonly permissions: readonly Need[];
  readonly grant: string;
  readonly lack: string;
}

/** Returns the additional permissions that a policy needs. */
export function permissionsNeededBy(policy: Policy): readonly NeededBy[] {
  const { method, maxEvictionsPerWorkload: limit } = policy;
  return [
    ...(method.kind === 'evict' ? [BY_EVICTION_API] : []),
    ...(typeof limit?.count === 'string' ? [BY_REPLICAS] : []),
  ].map((need) => ({ ...need, permissions: neededUnder(policy, need.permissions) }));
}

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

/** Additional permissions for a takeover: the relay renews the heartbeat, and proves it by dry runs. */
export const TAKEOVER_PERMISSIONS: readonly Permission[] = [
  { verb: 'get', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'patch', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'create', resource: 'nodes', name: PROOF_NODE },
  { verb: 'patch', resource: 'nodes', name: PROOF_NODE },
];

/** Optional additional permission of `evict`: without it, pods are evicted although their node may be alive. */
export const NODE_LEASE_PERMISSION: Permission = {
  verb: 'get',
  resource: 'leases',
  group: 'coordination.k8s.io',
  namespace: NODE_LEASE_NAMESPACE,
};

/** All permissions of the service in a cluster: the least that a single identity needs. */
export const NEEDED_PERMISSIONS: readonly Permission[] = [
  ...RELAY_PERMISSIONS,
  ...EVICT_PERMISSIONS.filter((right) => !RELAY_PERMISSIONS.some((other) => isDeepStrictEqual(right, other))),
];

/** Reports whether a permission reads nodes or pods, which are followed in the whole cluster under every policy. */
const isFollowing = ({ verb, resource }: Permission): boolean =>
  ['get', 'list', 'watch'].includes(verb) && ['nodes', 'pods'].includes(resource);

/** Permissions of the service in observe mode: it reads, and changes nothing. */
export const OBSERVE_PERMISSIONS: readonly Permission[] = NEEDED_PERMISSIONS.filter(isFollowing);

/** Namespaces outside of which a policy evicts no pod, by its `include`; empty: it may in all namespaces. */
export const evictedNamespaces = ({ include }: Policy): readonly string[] =>
  include.every(({ namespaces }) => namespaces && !namespaces.some(isPattern))
    ? [...new Set(include.flatMap(({ namespaces = [] }) => namespaces))]
    : [];

/** Following needs all namespaces; other permissions only those of `include`, where RoleBindings can grant them. */
export function neededUnder(policy: Policy, permissions: readonly Permission[]): readonly Need[] {
  const namespaces = evictedNamespaces(policy);
  if (namespaces.length === 0) return permissions;
  return permissions.map((right) => (isFollowing(right) ? right : { ...right, namespaces }));
}

/** Returns the permissions without which a cluster isn't managed under a policy: in observe mode, reading is enough. */
export const requiredUnder = (policy: Policy): readonly Need[] =>
  policy.mode === 'observe'
    ? OBSERVE_PERMISSIONS
    : neededUnder(policy, NEEDED_PERMISSIONS.filter(isRequired));

/** Reports whether the API server denied a request for lack of a permission. */
export const isDenied = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 403;

/** Returns the response to a question that is optional; `undefined`: it was denied, as hardened clusters do. */
export const unlessDenied = <T>(question: Promise<T>): Promise<T | undefined> =>
  question.catch((error: unknown) => {
    if (isDenied(error)) return undefined;
    throw error;
  });

/**
 * Missing permissions, as `verb resource name in namespace`; single namespaces only if not granted in all. Rejects with
 * `ApiError`.
 */
export async function missingPermissions(
  api: Pick<PermissionReview, 'allowed'>,
  permissions: readonly Need[],
): Promise<readonly string[]> {
  const missing = permissions.map(async ({ namespaces = [], ...right }) => {
    if (await api.allowed(right)) return [];
    if (namespaces.length === 0) return [permissionText(right)];
    return missingPermissions(
      api,
      namespaces.map((namespace) => ({ ...right, namespace })),
    );
  });
  return [...new Set((await Promise.all(missing)).flat())];
}

/** Returns a permission as `verb resource name in namespace`. The last two parts are optional. */
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

/** Which permission to grant for pods of live nodes, as one sentence; `undefined`: granted. Rejects with `ApiError`. */
export async function nodeLeaseHint(api: PermissionReview): Promise<string | undefined> {
  const [missing] = await missingPermissions(api, [NODE_LEASE_PERMISSION]);
  if (missing === undefined) return undefined;
  return `Grant ${missing} (cdk/rbac/evict). Otherwise, pods are evicted from unreachable nodes that may be alive.`;
}

/**
 * Checks that the cluster can be managed. Rejects with `ApiError`, one sentence: unreachable, rejected credentials, or
 * missing permissions (403). Resolves with the refusal if the credentials may not ask, as without the ClusterRole
 * `system:basic-user`: nothing is known then.
 */
export async function preflight(
  api: PermissionReview,
  permissions: readonly Need[],
): Promise<ApiError | undefined> {
  const missing = await missingPermissions(api, permissions).catch((error: unknown) => {
    if (isDenied(error)) return error;
    throw error;
  });
  if (missing instanceof ApiError) return missing;
  if (missing.length === 0) return undefined;
  throw new ApiError(
    `The credentials for ${api.host} lack permissions: grant them, in all namespaces unless one is named: ${missing.join(', ')}.`,
    403,
    'Forbidden',
  );
}
