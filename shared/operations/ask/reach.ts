import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { type Known, known, knownOr } from '#shared/explain/known.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { ContextFleet, Fleet } from '../fleet/fleet.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { factOf } from './facts.ts';

/** A cluster of a fleet, to be asked one thing after the other: what cannot be had is said, and keeps nothing else back. */
export interface Reached {
  /** Of its API server. */
  ask<T>(what: (live: LiveCluster) => Promise<T>): Promise<Known<T>>;
  /** The same; but where nothing else can be asked than the cluster, it rejects as `what` does. */
  askFirst<T>(what: (live: LiveCluster) => Promise<T>): Promise<Known<T>>;
  /** Ends what it holds open. */
  close(): void;
}

/** The way to a cluster's API server, be there one or not. */
export async function reach(fleet: Fleet | ContextFleet, cluster: ClusterName): Promise<Reached> {
  const way = await factOf(() => fleet.cluster(cluster));
  async function ask<T>(what: (live: LiveCluster) => Promise<T>): Promise<Known<T>> {
    return 'unknown' in way ? way : factOf(() => what(way.value));
  }
  return {
    ask,
    askFirst: async (what) =>
      fleet.kind === 'context' && 'value' in way ? known(await what(way.value)) : ask(what),
    close: () => knownOr(way, undefined)?.close(),
  };
}

/** What governs a cluster now. */
export const rulesNow = (
  { rulesStore }: Pick<Fleet, 'rulesStore'>,
  cluster: ClusterName,
  matching: MatchOptions,
): Promise<Known<Rules>> => factOf(async () => rulesOf(await rulesStore.read(cluster), matching));
