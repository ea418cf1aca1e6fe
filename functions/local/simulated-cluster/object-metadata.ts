import { isDeepStrictEqual } from 'node:util';
import type { ApiObject, ResourceName } from './objects.ts';

/** The object, as of another version. */
export const versioned = <T extends ApiObject>(object: T, resourceVersion: string): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

/** The metadata that only the server sets, as it is. */
export function serverMetadata({ metadata }: ApiObject): object {
  const { uid, resourceVersion, creationTimestamp, namespace } = metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = metadata;
  return {
    uid,
    resourceVersion,
    creationTimestamp,
    ...(namespace === undefined ? {} : { namespace }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...(generation === undefined ? {} : { generation }),
  };
}

/** Counts a pod's changes of spec; the real server counts no node's. */
export function nextGeneration<T extends ApiObject>(resource: ResourceName, current: T, next: T): T {
  if (resource !== 'pods' || isDeepStrictEqual(current['spec'], next['spec'])) return next;
  return { ...next, metadata: { ...next.metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}
