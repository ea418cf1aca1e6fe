import type { EpochMs } from './epoch-ms.ts';

/** A moment to the second, as everything in a cluster writes it (`metav1.Time`): RFC 3339 in UTC. */
export const timeText = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
