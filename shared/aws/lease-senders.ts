import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Leases } from '#shared/state/lease.ts';

/** Prefix of IAM's unique IDs of roles. A session's name follows after a colon. */
const ROLE = 'AROA';

/**
 * `SenderId` in SQS, `UserId` in STS, without the session's name: relays with one role are one sender, also with
 * renewed credentials.
 */
export function senderOf(userId: string): string {
  const [first = ''] = userId.split(':');
  return first.startsWith(ROLE) ? first : userId;
}

/** Reports whether a user's messages are accepted as a cluster's deltas. Rejects with `StoreError`. */
export type CanSend = (cluster: ClusterName, userId: string) => Promise<boolean>;

/**
 * Accepts the senders in a cluster's lease: IAM decides who may write it, and a relay that acquires it writes its own
 * sender. No sender in it accepts all; without a lease, none is. `recent`: a lease as of up to a second ago.
 */
export function leaseSenders(leases: Pick<Leases, 'read'>, recent: Leases['read']): CanSend {
  return async (cluster, userId) => {
    const sender = senderOf(userId);
    const isNamed = async (read: Leases['read']) => {
      const lease = await read(cluster);
      return lease !== undefined && (lease.senders?.includes(sender) ?? true);
    };
    // A relay sends deltas as soon as it holds the lease, so the recent copy may be older than its first delta.
    return (await isNamed(recent)) || isNamed((name) => leases.read(name));
  };
}
