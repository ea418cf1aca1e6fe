import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { type Fact, known, knownOr } from '#shared/explain/known.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { ContextFleet, Fleet } from '../fleet/fleet.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { factOf } from './facts.ts';

/** A cluster that can be asked several questions. A failed one gets the reason as its answer, apart from the others. */
export interface Reached {
  ask<T>(what: (live: LiveCluster) => Promise<T>): Promise<Fact<T>>;
  /** Rejects as `what` does if only the cluster can be asked. */
  askFirst<T>(what: (live: LiveCluster) => Promise<T>): Promise<Fact<T>>;
}

/** Asks questions of a cluster. If it cannot be reached, all of them get the reason as their answer. */
export async function reach<Answer>(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  use: (reached: Reached) => Promise<Answer>,
): Promise<Answer> {
  const way = await factOf(() => fleet.cluster(cluster));
  async function ask<T>(what: (live: LiveCluster) => Promise<T>): Promise<Fact<T>> {
    return 'unknown' in way ? way : factOf(() => what(way.value));
  }
  const askFirst: Reached['askFirst'] = async (what) =>
    fleet.kind === 'context' && 'value' in way ? known(await what(way.value)) : ask(what);
  return use({ ask, askFirst }).finally(() => knownOr(way, undefined)?.close());
}

export const rulesNow = (
  { rulesStore }: Pick<Fleet, 'rulesStore'>,
  cluster: ClusterName,
  matching: MatchOptions,
): Promise<Fact<Rules>> => factOf(async () => rulesOf(await rulesStore.read(cluster), matching));
