import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Leases } from '#shared/state/lease.ts';

/** What IAM's unique IDs of roles begin with; a session's name follows after a colon. */
const ROLE = 'AROA';

/**
 * Who SQS says has sent a message (`SenderId`), and STS who asks (`UserId`), without the name of the session: relays that
 * have one role are one sender, and credentials that are renewed are the same one's.
 */
export function senderOf(userId: string): string {
  const [first = ''] = userId.split(':');
  return first.startsWith(ROLE) ? first : userId;
}

/** Whether what somebody sends is taken for the word of a cluster's relay. Rejects with `StoreError`. */
export type CanSend = (cluster: ClusterName, userId: string) => Promise<boolean>;

/**
 * Who may write a cluster's lease speaks for the cluster: IAM says who that is, and whoever takes the lease writes there how
 * queues name him. Nobody is refused by a lease that names nobody; for a cluster whose lease nobody ever took, nobody speaks.
 * `recent`: a lease as it was up to a second ago.
 */
export function leaseSenders(leases: Pick<Leases, 'look'>, recent: Leases['look']): CanSend {
  return async (cluster, userId) => {
    const sender = senderOf(userId);
    const isNamed = async (look: Leases['look']) => {
      const lease = await look(cluster);
      return lease !== undefined && (lease.senders?.includes(sender) ?? true);
    };
    // A relay speaks as soon as it has the lease.
    return (await isNamed(recent)) || isNamed((name) => leases.look(name));
  };
}
