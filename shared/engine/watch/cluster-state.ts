import type { ClusterGate } from '#shared/eviction/eviction-gate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** `standby` while another relay holds the lease, otherwise the state of its own connection. */
export type ClusterRelayState = { readonly kind: 'standby' } | ConnectionState;

/** A cluster's mode in force, from its policy and its stops. */
export type ModeInForce = 'enforce' | ClusterGate['kind'];

/**
 * Not everything is listed yet, changes are received, or the connection is lost. Disconnected is worse than syncing:
 * the earlier lists get stale.
 */
export type ConnectionState =
  | {
      readonly kind: 'syncing' | 'live';
      /** Present: requests are suspended for some seconds, because the API server doesn't respond. */
      readonly breakerOpen?: true;
    }
  | {
      readonly kind: 'disconnected';
      readonly since: EpochMs;
      /** Absent: it has never connected. */
      readonly lastContactAt?: EpochMs;
    };
