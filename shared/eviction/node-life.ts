import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A node's Lease in `kube-node-lease`, as it was read. The kubelet renews it: by default every 10 s, for 40 s. */
export interface NodeLease {
  /** `spec.renewTime`, by the kubelet's clock; absent: there is none, or it is no time. */
  readonly renewedAt?: EpochMs;
  /** `spec.leaseDurationSeconds`; absent: there is none, or it is no positive number. */
  readonly durationMs?: number;
  /** The time of the API server's clock when it answered; rather too early than too late. */
  readonly asOf: EpochMs;
}

/** Why a Lease keeps no pod. */
export type Lapse =
  /** It was not renewed within its duration. */
  | 'expired'
  /** Nobody ever renewed one. */
  | 'missing'
  /** It does not say when it was renewed, or for how long. */
  | 'malformed'
  /** It was renewed later than it is by the API server's clock, by more than its duration: that proves nothing. */
  | 'future'
  /** We have no right to read it. */
  | 'hidden';

/** What a node's Lease says of the node. */
export type NodeLife =
  /** `until`: the Lease has expired by then unless it is renewed, by our clock. */
  | { readonly kind: 'alive'; readonly renewedAt: EpochMs; readonly until: EpochMs }
  | { readonly kind: 'lapsed'; readonly because: Lapse };

/** A Lease that claims to be good for longer is not: whoever wrote it would hold the pods of a dead node for years. */
const MAX_LEASE_MS = 10 * 60_000;

/**
 * Reports whether a node is alive by its Lease; `undefined`: it has none. `answeredAt`: when the Lease was there, by our clock. What
 * a kubelet's clock is ahead lengthens a dead node's life by as much, and by the Lease's duration at most; a kubelet whose clock is
 * further ahead, or behind by more than the duration, is not shown to be alive: its pods go as they go without a Lease.
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
