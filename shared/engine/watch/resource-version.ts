import type { WatchEvent } from '#shared/kubernetes/api.ts';

/**
 * Reports whether one version of an object is newer than another of the same resource. Versions are decimal numbers of
 * any length, and comparable (KEP-5504; in practice since etcd 3).
 */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

export const newest = (a: string, b: string): string => (isNewer(a, b) ? a : b);

/** Returns the version that a watch has reached with an event. */
export const versionOf = (event: WatchEvent<{ readonly resourceVersion: string }>): string =>
  'object' in event ? event.object.resourceVersion : event.resourceVersion;
