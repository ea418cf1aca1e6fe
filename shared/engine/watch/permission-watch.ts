import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { permissionText } from '#shared/kubernetes/permissions.ts';
import type { Fault } from '#shared/state/fault.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterFaults } from './cluster-faults.ts';

/** Interval of the checks. With a renewal of the lease, a lost permission is reported within 15 s. */
export const CHECK_PERMISSIONS_MS = 10_000;

/** Permissions that the next taint, or the end of a watch, will require. */
const REVIEWED: readonly (Permission & Pick<Fault, 'type'> & { readonly resource: 'nodes' | 'pods' })[] = [
  { type: 'watch-failing', verb: 'watch', resource: 'nodes' },
  { type: 'list-failing', verb: 'list', resource: 'pods' },
];
const BY = 'rights';
/** Interval while the API server does not answer. If it is frozen, its watches stay open, and show nothing. */
const UNANSWERED_MS = 1_000;

/**
 * Asks repeatedly whether a relay may still follow the cluster, until `signal` aborts. Never rejects. An API server
 * continues a watch for minutes after its credentials or permissions are gone, and pods are listed only when a node is
 * tainted, too late to fix permissions. `answered`: the first answer after one that did not come.
 */
export async function watchPermissions(
  api: Pick<KubernetesApi, 'allowed'>,
  faults: ClusterFaults,
  signal: AbortSignal,
  answered: () => void,
): Promise<void> {
  for (let wasSilent = false; !signal.aborted; ) {
    let isSilent = false;
    await Promise.all(
      REVIEWED.map(async ({ type, ...right }) => {
        const error = await whyNot(api, right);
        isSilent ||= error instanceof ApiError && error.unanswered;
        if (!signal.aborted) faults.note({ type, resource: right.resource }, error, { by: BY });
      }),
    );
    if (wasSilent && !isSilent && !signal.aborted) answered();
    wasSilent = isSilent;
    await pause(isSilent ? UNANSWERED_MS : CHECK_PERMISSIONS_MS, signal);
  }
}

async function whyNot(api: Pick<KubernetesApi, 'allowed'>, right: Permission): Promise<unknown> {
  try {
    if (await api.allowed(right)) return undefined;
    const lacks = `The credentials lack the permission to ${permissionText(right)} in all namespaces: grant it (cdk/rbac/relay).`;
    return new ApiError(lacks, 403, 'Forbidden');
  } catch (error) {
    // Not every user may ask this: then only failed lists and watches show it.
    return error instanceof ApiError && (error.status === 403 || error.status === 404) ? undefined : error;
  }
}
