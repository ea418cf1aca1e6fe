import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ApiObject, type EpochMs, kubernetesTime, type PodObject, type ResourceName } from './kinds.ts';
import { conflict, type StatusCause } from './status.ts';

/** RFC 1123; upstream: `IsDNS1123Subdomain`. */
const NAME_MAX_LENGTH = 253;
const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** Upstream's alphabet: without vowels, so that no words appear, and without characters that look alike. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

/** The default for a pod without its own (`DefaultTerminationGracePeriodSeconds`). */
const DEFAULT_GRACE_SECONDS = 30;

/** Returns a name made of `metadata.generateName`. */
export const generatedName = (prefix: string): string =>
  prefix +
  Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)]).join('');

/** Returns the faults of an object's name; empty when it is valid. */
export function nameCauses(name: string): readonly StatusCause[] {
  const field = 'metadata.name';
  if (name === '') {
    const message = 'Required value: name or generateName is required';
    return [{ reason: 'FieldValueRequired', message, field }];
  }
  if (name.length <= NAME_MAX_LENGTH && NAME.test(name)) return [];
  const message =
    `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
    `'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com'), and have at most ` +
    `${NAME_MAX_LENGTH} characters`;
  return [{ reason: 'FieldValueInvalid', message, field }];
}

/** Returns the object with another version. */
export const versioned = <T extends ApiObject>(object: T, resourceVersion: string): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

/** Returns the object's current metadata that only the server sets. */
export function serverMetadata({ metadata }: ApiObject): object {
  const { uid, resourceVersion, creationTimestamp, namespace } = metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds, generation, managedFields } = metadata;
  return {
    uid,
    resourceVersion,
    creationTimestamp,
    ...(namespace === undefined ? {} : { namespace }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...(generation === undefined ? {} : { generation }),
    ...(managedFields === undefined ? {} : { managedFields }),
  };
}

/** Reports whether spec changes of this resource are counted; the real server does not count those of nodes. */
export const countsGenerations = (resource: ResourceName): boolean =>
  resource !== 'nodes' && resource !== 'namespaces' && resource !== 'events';

/** Increments the generation if the spec changed and the resource counts generations. */
export function nextGeneration<T extends ApiObject>(resource: ResourceName, current: T, next: T): T {
  if (!countsGenerations(resource) || isDeepStrictEqual(current['spec'], next['spec'])) return next;
  return { ...next, metadata: { ...next.metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}

/** The object, or version of it, that a deletion requires. */
export interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** Throws 409 when the stored object, or its version, is not the required one. */
export function checkPreconditions(
  { kind, metadata: { name, uid, resourceVersion } }: ApiObject,
  meant: Preconditions,
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

/** Returns the grace period of a pod in seconds; 0 when it runs nowhere. Upstream: `podStrategy.CheckGracefulDelete`. */
export function podGraceSeconds(
  { metadata, spec, status }: PodObject,
  requested: number | undefined,
): number {
  if (!spec.nodeName || status.phase === 'Succeeded' || status.phase === 'Failed') return 0;
  const seconds =
    requested ??
    metadata.deletionGracePeriodSeconds ??
    spec.terminationGracePeriodSeconds ??
    DEFAULT_GRACE_SECONDS;
  return seconds < 0 ? 1 : seconds;
}

/**
 * Returns the object with its deletion time; the unchanged object if it is to be deleted by then already. A second request only
 * shortens the first grace period, counted from the first request. Upstream: `rest.BeforeDelete`.
 */
export function markedDeleted<T extends ApiObject>(object: T, graceSeconds: number, now: EpochMs): T {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, generation = 0 } = object.metadata;
  const isMarked = deletionTimestamp !== undefined;
  if (isMarked && graceSeconds >= deletionGracePeriodSeconds) return object;
  const requestedAt = isMarked ? Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000 : now;
  return {
    ...object,
    metadata: {
      ...object.metadata,
      deletionTimestamp: kubernetesTime(requestedAt + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
      generation: isMarked ? generation : generation + 1,
    },
  };
}
