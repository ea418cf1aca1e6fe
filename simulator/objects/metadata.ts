import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ApiObject, type EpochMs, kubernetesTime, type PodObject, type ResourceName } from './kinds.ts';
import { conflict, type StatusCause } from './status.ts';

/** RFC 1123; upstream: `IsDNS1123Subdomain`. */
const NAME_MAX_LENGTH = 253;
const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** Upstream's alphabet: no vowels, so no words, and nothing that looks like something else. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

/** What a pod gets that says nothing else (`DefaultTerminationGracePeriodSeconds`). */
const DEFAULT_GRACE_SECONDS = 30;

/** A name made of `metadata.generateName`. */
export const generatedName = (prefix: string): string =>
  prefix +
  Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)]).join('');

/** What is wrong with an object's name; empty when it is valid. */
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

/** The object, as of another version. */
export const versioned = <T extends ApiObject>(object: T, resourceVersion: string): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

/** The metadata that only the server sets, as it is. */
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

/** Whether changes of spec are counted; the real server counts no node's. */
export const countsGenerations = (resource: ResourceName): boolean =>
  resource !== 'nodes' && resource !== 'namespaces' && resource !== 'events';

/** Counts a change of spec, where they are counted. */
export function nextGeneration<T extends ApiObject>(resource: ResourceName, current: T, next: T): T {
  if (!countsGenerations(resource) || isDeepStrictEqual(current['spec'], next['spec'])) return next;
  return { ...next, metadata: { ...next.metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}

/** Which object is meant by a deletion, or in which version of it. */
export interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** Throws 409 when another object, or another version, is there than the one meant. */
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
 * The object, to be gone after a grace period; itself when it is to be gone by then already. A second request only
 * shortens the first, counted from there. Upstream: `rest.BeforeDelete`.
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
