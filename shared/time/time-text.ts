import type { EpochMs } from './epoch-ms.ts';

/** Returns a time to the second, as all Kubernetes objects have it (`metav1.Time`): RFC 3339 in UTC. */
export const timeText = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
