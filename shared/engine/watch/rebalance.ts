import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord, LeaseRequest } from '#shared/state/lease.ts';

/** Base load of a cluster, in nodes: its connections, its lease, its bookmarks. */
const CLUSTER_LOAD = 100;
/** Clusters move only if the move reduces the busier relay's load by this fraction: nodes come and go. */
const WORTHWHILE = 0.1;

/** Returns the load of a cluster on the relay that follows it: its last known nodes and the base load. */
export const clusterLoad = ({ nodes = 0 }: Pick<LeaseRecord, 'nodes'>): number => CLUSTER_LOAD + nodes;

/** Returns the load of `holder`, from all lease records. */
export const loadOf = (records: readonly LeaseRecord[], holder: string): number =>
  records.filter((record) => record.holder === holder).reduce((sum, record) => sum + clusterLoad(record), 0);

/**
 * Reports whether a cluster should move from a relay with one load to a relay with another. Then the reverse move is
 * never worthwhile.
 */
const isWorthMoving = (cluster: number, fromLoad: number, toLoad: number): boolean =>
  toLoad + cluster <= fromLoad * (1 - WORTHWHILE);

/**
 * Returns the lease that relay `me` should request: of the busiest relay with a lease worth moving, the one that makes
 * both loads most equal. Never returns an avoided one. `undefined`: the loads are even, or the capacity (in nodes) is
 * used up.
 */
export function leaseToAskFor(
  records: readonly LeaseRecord[],
  me: string,
  budget: number,
  avoids: (cluster: ClusterName) => boolean = () => false,
): Lease | undefined {
  const mine = loadOf(records, me);
  const held = records.filter((record): record is Lease => record.holder !== undefined);
  const holders = [...new Set(held.map(({ holder }) => holder))]
    .filter((holder) => holder !== me)
    .map((holder) => ({ holder, load: loadOf(records, holder) }))
    .sort((a, b) => b.load - a.load);
  for (const { holder, load } of holders) {
    const unevenness = (lease: Lease) => Math.abs(load - mine - 2 * clusterLoad(lease));
    const [best] = held
      .filter((lease) => lease.holder === holder && lease.bid === undefined && !avoids(lease.cluster))
      .filter((lease) => mine + clusterLoad(lease) <= budget)
      .filter((lease) => isWorthMoving(clusterLoad(lease), load, mine))
      .sort((a, b) => unevenness(a) - unevenness(b));
    if (best) return best;
  }
  return undefined;
}

/** Reports whether a relay hands its lease off to the bidder: the loads may have changed since the bid. */
export const isWorthGiving = (records: readonly LeaseRecord[], lease: Lease, bid: LeaseRequest): boolean =>
  isWorthMoving(clusterLoad(lease), loadOf(records, lease.holder), bid.load);
