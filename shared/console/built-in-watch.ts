import type { ClusterName } from '#shared/eviction/identity.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { withCluster } from '#shared/operations/fleet/live-cluster.ts';
import { builtInOf } from '#shared/operations/look/built-in.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { cached } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';

/** The read covers the whole control plane, which rarely changes. */
const ASK_AGAIN_MS = 5 * 60_000;

const NO_ANSWER_YET: BuiltIn = { state: 'unknown', evidence: 'its cluster has not answered yet' };

/** Reads in the background, so callers never wait. */
export function watchBuiltIn(
  fleet: Pick<Fleet, 'cluster'>,
  clock: Clock,
  ask = builtInOf,
): (cluster: ClusterName) => BuiltIn {
  const known = new Map<ClusterName, BuiltIn>();
  const read = (cluster: ClusterName) => withCluster(fleet, cluster, ({ objects }) => ask(objects));
  const unknown = (error: unknown): BuiltIn => ({ state: 'unknown', evidence: errorMessage(error) });
  const refresh = cached(
    ASK_AGAIN_MS,
    async (cluster: ClusterName) => known.set(cluster, await read(cluster).catch(unknown)),
    clock,
  );
  return (cluster) => {
    void refresh(cluster);
    return known.get(cluster) ?? NO_ANSWER_YET;
  };
}
