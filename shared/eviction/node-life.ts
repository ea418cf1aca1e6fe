import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A node's Lease in `kube-node-lease`, as it was read. By default, the kubelet renews it every 10 s, for 40 s. */
export interface NodeLease {
  /** `spec.renewTime`, by the kubelet's clock; absent: there is none, or it is no time. */
  readonly renewedAt?: EpochMs;
  /** `spec.leaseDurationSeconds`; absent: there is none, or it is no positive number. */
  readonly durationMs?: number;
  /** The API server's time when it answered; rather too early than too late. */
  readonly asOf: EpochMs;
}

/** The reason why a Lease keeps no pod. */
export type Lapse =
  | 'expired'
  | 'missing'
  /** The Lease has no valid renewal time or duration. */
  | 'malformed'
  /** The renewal time is ahead of the API server's clock by more than the Lease's duration: that proves nothing. */
  | 'future'
  | 'hidden';

export type NodeLife =
  /** `until`: when the Lease has expired, by our clock, unless it is renewed. */
  | { readonly kind: 'alive'; readonly renewedAt: EpochMs; readonly until: EpochMs }
  | { readonly kind: 'lapsed'; readonly because: Lapse };

/** Longest duration of a Lease that counts. With a longer one, any writer could hold the pods of a dead node for years. */
export const MAX_LEASE_MS = 10 * 60_000;

/**
 * Decides by a node's Lease whether it is alive. `lease`: `undefined` if there is none; `answeredAt`: by our clock. A
 * kubelet clock that is ahead extends a dead node's life by that, at most by the Lease's duration. One that is further
 * off proves nothing: pods are evicted as without a Lease.
 */
export function nodeLife(lease: NodeLease | undefined, answeredAt: EpochMs): NodeLife {
  if (!lease) return { kind: 'lapsed', because: 'missing' };
  const { renewedAt, durationMs, asOf } = lease;
  if (renewedAt === undefined || durationMs === undefined) return { kind: 'lapsed', because: 'malformed' };
  const lastsMs = Math.min(durationMs, MAX_LEASE_MS);
  if (renewedAt - asOf > lastsMs) return { kind: 'lapsed', because: 'future' };
  const leftMs = renewedAt + lastsMs - asOf;
  if (leftMs <= 0) return { kind: 'lapsed', because: 'expired' };
  return { kind: 'alive', renewedAt, until: Math.ceil(answeredAt + leftMs) };
}
