import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord, LeaseRequest } from '#shared/state/lease.ts';

/** What following a cluster costs by itself, in nodes: its connections, its lease, its bookmarks. */
const CLUSTER_LOAD = 100;
/** Clusters move only where that takes this part of the busier relay's load off: nodes come and go. */
const WORTHWHILE = 0.1;

/** What a cluster costs the relay that follows it: its nodes, as last known, and what any cluster costs. */
export const clusterLoad = ({ nodes = 0 }: Pick<LeaseRecord, 'nodes'>): number => CLUSTER_LOAD + nodes;

/** What `holder` has on its hands, by all leases there are. */
export const loadOf = (records: readonly LeaseRecord[], holder: string): number =>
  records.filter((record) => record.holder === holder).reduce((sum, record) => sum + clusterLoad(record), 0);

/** Whether a cluster is better off with a relay of that load than with one of this, and no other way round. */
const isWorthMoving = (cluster: number, fromLoad: number, toLoad: number): boolean =>
  toLoad + cluster <= fromLoad * (1 - WORTHWHILE);

/**
 * The lease that relay `me` should ask its holder for: of the busiest relay that has one worth moving, the one that
 * leaves both with the most equal loads; never one it avoids. `undefined`: the loads are even, or the budget (in nodes) is used up.
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

/** Whether a relay gives its lease to who asks for it: things may have changed since that one looked. */
export const isWorthGiving = (records: readonly LeaseRecord[], lease: Lease, bid: LeaseRequest): boolean =>
  isWorthMoving(clusterLoad(lease), loadOf(records, lease.holder), bid.load);
