import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { permissionText } from '#shared/kubernetes/permissions.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterFaults } from './cluster-faults.ts';

/** Interval of the reviews, each an event in an audit log. With a renewal of the lease, a loss is reported in 30 s. */
export const CHECK_PERMISSIONS_MS = 25_000;
/** Interval of pings, which audit logs leave out. If the server is frozen, its watches stay open, and show nothing. */
export const PING_MS = CHECK_PERMISSIONS_MS / 5;
/** Interval while the API server does not answer. */
const UNANSWERED_MS = 1_000;

/** Permissions that the next taint, or the end of a watch, will require. */
const REVIEWED = [
  { type: 'watch-failing', verb: 'watch', resource: 'nodes' },
  { type: 'list-failing', verb: 'list', resource: 'pods' },
] as const;
const BY = 'rights';

type Api = Pick<KubernetesApi, 'ping' | 'lacking'>;
type Review = readonly (readonly [right: (typeof REVIEWED)[number], error: unknown])[];

/**
 * Checks repeatedly whether a relay may still follow the cluster, until `signal` aborts. Never rejects. An API server
 * continues a watch for minutes after its credentials or permissions are gone, and pods are listed only when a node is
 * tainted, too late to fix permissions. `answered`: the first answer after one that did not come.
 */
export async function watchPermissions(
  api: Api,
  faults: ClusterFaults,
  signal: AbortSignal,
  answered: () => void,
): Promise<void> {
  let wasSilent = false;
  // After an error, each ping reviews, so that its end shows soon.
  let isFailing = false;
  for (let pings = 0; !signal.aborted; pings++) {
    const errors = await check(api, isFailing || pings % (CHECK_PERMISSIONS_MS / PING_MS) === 0);
    if (signal.aborted) return;
    for (const [{ type, resource }, error] of errors) faults.note({ type, resource }, error, { by: BY });
    isFailing = errors.some(([, error]) => error !== undefined);
    const isSilent = errors.some(([, error]) => error instanceof ApiError && error.unanswered);
    if (wasSilent && !isSilent) answered();
    wasSilent = isSilent;
    await pause(isSilent ? UNANSWERED_MS : PING_MS, signal);
  }
}

/** Returns the error of each reviewed permission; none at all if the server answered, and no review was due. */
async function check(api: Api, isDue: boolean): Promise<Review> {
  try {
    const [lacking] = await Promise.all([isDue ? api.lacking(REVIEWED) : undefined, api.ping()]);
    if (!lacking) return [];
    return REVIEWED.map((right) => [right, lacking.includes(right) ? lackOf(right) : undefined]);
  } catch (error) {
    // Not every user may ask this: then only failed lists and watches show it.
    const isUnknown = error instanceof ApiError && (error.status === 403 || error.status === 404);
    return REVIEWED.map((right) => [right, isUnknown ? undefined : error]);
  }
}

function lackOf(right: Permission): ApiError {
  const lacks = `The credentials lack the permission to ${permissionText(right)} in all namespaces: grant it (cdk/rbac/relay).`;
  return new ApiError(lacks, 403, 'Forbidden');
}
