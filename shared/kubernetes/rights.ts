import { isDeepStrictEqual } from 'node:util';
import type { Policy } from '#shared/eviction/policy.ts';
import { ApiError } from './http/api-error.ts';
import type { Verb } from './http/call.ts';
import { NODE_LEASE_NAMESPACE } from './node-lease.ts';
import { WORKLOAD_RIGHTS } from './replicas.ts';
import { TAKEOVER_GROUP, TAKEOVER_NAME } from './takeover.ts';
import { PROOF_NODE } from './takeover-proof.ts';

/** A verb on a resource; a subresource stands behind a slash, as in a Role. */
export interface Right {
  readonly verb: Verb;
  readonly resource: string;
  /** Its API group; absent: the core group. */
  readonly group?: string;
  /** Of one object alone; absent: of all. */
  readonly name?: string;
  /** Absent: in every namespace. */
  readonly namespace?: string;
}

/** Who can ask the API server what its own credentials may do (`SelfSubjectAccessReview`). */
export interface RightsReview {
  /** Names the server in messages. */
  readonly host: string;
  /** Rejects with `ApiError`. */
  allowed(right: Right): Promise<boolean>;
}

/** What the relay does to a cluster: it follows, and changes nothing. */
export const RELAY_RIGHTS: readonly Right[] = [
  { verb: 'list', resource: 'nodes' },
  { verb: 'watch', resource: 'nodes' },
  { verb: 'list', resource: 'pods' },
  { verb: 'watch', resource: 'pods' },
];

/** What `evict` does to a cluster. Events are only ever created, never patched. */
export const EVICT_RIGHTS: readonly Right[] = [
  { verb: 'get', resource: 'nodes' },
  { verb: 'get', resource: 'pods' },
  { verb: 'list', resource: 'pods' },
  { verb: 'delete', resource: 'pods' },
  { verb: 'patch', resource: 'pods/status' },
  { verb: 'create', resource: 'events' },
];

/** Without these, pods aren't evicted. Without permission to create Events, pods are evicted, but no Event reports it. */
export const EVICTING_RIGHTS: readonly Right[] = EVICT_RIGHTS.filter(({ resource }) => resource !== 'events');

/** What `evict` does besides where a policy says `method: evict`. */
export const EVICTION_API_RIGHTS: readonly Right[] = [{ verb: 'create', resource: 'pods/eviction' }];

/** What `evict` does besides by a policy: for which of its settings, where the right to it is granted, and what comes of its lack. */
export interface NeededBy {
  readonly setting: string;
  readonly rights: readonly Right[];
  readonly grant: string;
  readonly lack: string;
}

/** What of it a policy asks for. */
export const rightsNeededBy = ({ method, maxEvictionsPerWorkload: limit }: Policy): readonly NeededBy[] => [
  ...(method.kind === 'evict' ? [BY_EVICTION_API] : []),
  ...(typeof limit?.count === 'string' ? [BY_REPLICAS] : []),
];

const BY_EVICTION_API: NeededBy = {
  setting: 'method: evict',
  rights: EVICTION_API_RIGHTS,
  grant: 'cdk/rbac/eviction-api',
  lack: 'only pods of nodes that are down or gone are evicted there',
};

const BY_REPLICAS: NeededBy = {
  setting: 'maxEvictionsPerWorkload as a percentage',
  rights: WORKLOAD_RIGHTS,
  grant: 'cdk/rbac/replicas',
  lack: 'pods of workloads wait there',
};

/** What the relay does besides where a cluster is taken over at its nodes: it renews that, and proves by dry runs that it works. */
export const TAKEOVER_RIGHTS: readonly Right[] = [
  { verb: 'get', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'patch', group: TAKEOVER_GROUP, resource: 'takeovers', name: TAKEOVER_NAME },
  { verb: 'create', resource: 'nodes', name: PROOF_NODE },
  { verb: 'patch', resource: 'nodes', name: PROOF_NODE },
];

/** What `evict` reads besides, where it may: without it, pods go although their node may be alive. */
export const NODE_LEASE_RIGHT: Right = {
  verb: 'get',
  resource: 'leases',
  group: 'coordination.k8s.io',
  namespace: NODE_LEASE_NAMESPACE,
};

/** What the service does to a cluster, and so the least that one identity for all of it needs. */
export const NEEDED_RIGHTS: readonly Right[] = [
  ...RELAY_RIGHTS,
  ...EVICT_RIGHTS.filter((right) => !RELAY_RIGHTS.some((other) => isDeepStrictEqual(right, other))),
];

/** Which of the needed rights the credentials lack, as `verb resource name in namespace`. Rejects with `ApiError`. */
export async function missingRights(
  api: Pick<RightsReview, 'allowed'>,
  needs: readonly Right[],
): Promise<readonly string[]> {
  const answers = await Promise.all(needs.map((right) => api.allowed(right)));
  return needs.filter((_, index) => answers[index] !== true).map(rightText);
}

/** A right as `verb resource name in namespace`, of which the last two may be missing. */
export const rightText = ({
  verb,
  resource,
  name,
  namespace,
}: { readonly verb: string } & Pick<Right, 'resource' | 'name' | 'namespace'>): string =>
  [
    ...[verb, resource],
    ...(name === undefined ? [] : [name]),
    ...(namespace === undefined ? [] : ['in', namespace]),
  ].join(' ');

/**
 * What to grant so that pods of nodes which are alive are not evicted, as one sentence; `undefined`: it is granted. Nothing else needs it.
 * Rejects with `ApiError`.
 */
export async function nodeLeaseHint(api: RightsReview): Promise<string | undefined> {
  const [missing] = await missingRights(api, [NODE_LEASE_RIGHT]);
  if (missing === undefined) return undefined;
  return `Grant ${missing} (cdk/rbac/evict). Otherwise, pods are evicted from unreachable nodes that may be alive.`;
}

/**
 * Makes sure that the cluster can be managed, or what of it needs these rights done, before anything relies on it. Rejects
 * with `ApiError`, one sentence: it cannot be reached, the credentials are refused, or these rights are missing (403).
 */
export async function preflight(api: RightsReview, needs: readonly Right[] = NEEDED_RIGHTS): Promise<void> {
  const missing = await missingRights(api, needs);
  if (missing.length === 0) return;
  throw new ApiError(
    `The credentials for ${api.host} lack rights: grant them in all namespaces ${missing.join(', ')}.`,
    403,
    'Forbidden',
  );
}
