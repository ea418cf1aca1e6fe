import type { EpochMs } from '#shared/eviction/identity.ts';

/** `metav1.Time`: RFC 3339 in UTC, cut to the second. */
export const kubernetesTime = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
