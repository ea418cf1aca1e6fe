import type { ClusterGate } from '#shared/eviction/eviction-gate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Where a relay stands with a cluster: another relay speaks for it, or how this one, which does, hears it. */
export type ClusterRelayState = { readonly kind: 'standby' } | ConnectionState;

/** What a cluster's policy says and its stops let through. */
export type ModeInForce = 'enforce' | ClusterGate['kind'];

/**
 * How a relay hears a cluster: not all is listed yet, changes are heard as they happen, or nothing is heard since then.
 * Deaf is worse than syncing: what was listed before gets old.
 */
export type ConnectionState =
  | { readonly kind: 'syncing' | 'live' }
  | { readonly kind: 'disconnected'; readonly since: EpochMs };
