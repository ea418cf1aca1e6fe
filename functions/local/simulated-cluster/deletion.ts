import type { EpochMs } from '#shared/eviction/identity.ts';
import { kubernetesTime } from '#shared/kubernetes/kubernetes-time.ts';
import type { ApiObject, PodObject } from './objects.ts';
import { conflict } from './status.ts';

/** What a pod gets that says nothing else (`DefaultTerminationGracePeriodSeconds`). */
const DEFAULT_GRACE_SECONDS = 30;

export interface DeleteRequest {
  /** Which object is meant, or in which version of it. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  /** Of a pod; absent = its own. 0 removes it at once. */
  readonly gracePeriodSeconds?: number;
}

/** Throws 409 when another object, or another version, is there than the one meant. */
export function checkPreconditions(
  { kind, metadata: { name, uid, resourceVersion } }: ApiObject,
  meant: NonNullable<DeleteRequest['preconditions']>,
): void {
  if (meant.uid !== undefined && meant.uid !== uid) {
    const why =
      `the UID in the precondition (${meant.uid}) does not match the UID in record (${uid}). ` +
      'The object might have been deleted and then recreated';
    throw conflict(kind, name, why);
  }
  if (meant.resourceVersion !== undefined && meant.resourceVersion !== resourceVersion) {
    const why =
      `the ResourceVersion in the precondition (${meant.resourceVersion}) does not match the ` +
      `ResourceVersion in record (${resourceVersion}). The object might have been modified`;
    throw conflict(kind, name, why);
  }
}

/** Seconds a pod gets to end; none when it runs nowhere. Upstream: `podStrategy.CheckGracefulDelete`. */
export function podGraceSeconds({ metadata, spec, status }: PodObject, asked: number | undefined): number {
  if (!spec.nodeName || status.phase === 'Succeeded' || status.phase === 'Failed') return 0;
  const seconds =
    asked ??
    metadata.deletionGracePeriodSeconds ??
    spec.terminationGracePeriodSeconds ??
    DEFAULT_GRACE_SECONDS;
  return seconds < 0 ? 1 : seconds;
}

/**
 * The object, to be gone after a grace period; itself when it is to be gone by then already. A second request can
 * but shorten the first, counted from there. Upstream: `rest.BeforeDelete`.
 */
export function markedDeleted<T extends ApiObject>(object: T, graceSeconds: number, now: EpochMs): T {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, generation = 0 } = object.metadata;
  const isMarked = deletionTimestamp !== undefined;
  if (isMarked && graceSeconds >= deletionGracePeriodSeconds) return object;
  const askedAt = isMarked ? Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000 : now;
  return {
    ...object,
    metadata: {
      ...object.metadata,
      deletionTimestamp: kubernetesTime(askedAt + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
      generation: isMarked ? generation : generation + 1,
    },
  };
}
