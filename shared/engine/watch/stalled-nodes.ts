import pMap from 'p-map';
import type { SeenTaint } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { MAX_OVERDUE_MS, type Stall, stallOf, stallText } from '#shared/eviction/stalled.ts';
import type { Store } from '#shared/state/store.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import type { ClusterView } from './cluster-view.ts';

export const MAX_CONCURRENT_READS = 8;

export interface StalledNodesDeps {
  readonly store: Pick<Store, 'load'>;
  readonly view: Pick<ClusterView, 'downNodes'>;
  readonly rules: () => Rules;
  readonly epoch: number;
  readonly clock: Clock;
}

/**
 * Compares down nodes with their stored state, from the start of a lease. Returns a function that describes a node with
 * one of some keys whose evictions don't proceed; `undefined`: none. It reads nothing while no node is down, and rejects
 * with `StoreError`.
 */
export function stalledNodes(
  cluster: ClusterName,
  { store, view, rules, epoch, clock }: StalledNodesDeps,
): (keys: readonly string[]) => Promise<string | undefined> {
  const begunAt = clock.now();
  /** When each taint of a down node was first seen here, by the stopwatch: a clock may be set back. */
  const taintsSeen = new Sightings();
  /** The same for each pod without a deadline: the pod, or a change of its rules, may be new. */
  const podsSeen = new Sightings();
  return async (keys) => {
    const [now, nowMs] = [clock.now(), stopwatchMs(clock)];
    const down = view.downNodes(keys);
    const idOf = (node: NodeName, { key, value = '' }: SeenTaint) => `${node} ${key}=${value}`;
    taintsSeen.see(
      down.flatMap(({ node, taints }) => taints.map((each) => idOf(node, each))),
      nowMs,
    );
    const found = await pMap(
      down,
      async (downNode) => {
        const partition = await store.load({ cluster, node: downNode.node }, now);
        const isSettled = (taint: SeenTaint) =>
          now - Math.max(taint.seenAt, begunAt) > MAX_OVERDUE_MS ||
          taintsSeen.ageOf(idOf(downNode.node, taint), nowMs) > MAX_OVERDUE_MS;
        return stallOf(downNode, partition, { rules: rules(), epoch, now, isSettled });
      },
      { concurrency: MAX_CONCURRENT_READS },
    );
    const stalls = found.filter((stall) => stall !== undefined);
    podsSeen.see(stalls.flatMap(podsOf), nowMs);
    const isLasting = (stall: Stall) =>
      stall.kind !== 'unscheduled' ||
      podsOf(stall).some((uid) => podsSeen.ageOf(uid, nowMs) > MAX_OVERDUE_MS);
    const lasting = stalls.find(isLasting);
    return lasting && stallText(lasting);
  };
}

const podsOf = (stall: Stall): readonly PodUid[] =>
  stall.kind === 'unscheduled' ? stall.pods.map(({ uid }) => uid) : [];

/** Since when each ID has been present without a break, by the stopwatch. */
class Sightings {
  #since: ReadonlyMap<string, number> = new Map();

  see(ids: readonly string[], nowMs: number): void {
    this.#since = new Map(ids.map((id) => [id, this.#since.get(id) ?? nowMs]));
  }

  ageOf(id: string, nowMs: number): number {
    return nowMs - (this.#since.get(id) ?? nowMs);
  }
}
