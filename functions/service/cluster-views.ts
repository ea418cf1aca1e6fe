import { defined } from '#shared/defined.ts';
import type { ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import type { ClusterState } from '#shared/engine/clusters/probe-server.ts';
import type { Relay } from '#shared/engine/watch/relay.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ServiceClusterView, ServiceView } from '#shared/operations/fleet/service-view.ts';
import type { Fault } from '#shared/state/fault.ts';

/** Returns the state of each cluster that only this process has. */
export function clusterViews(
  { apis, states, troubles }: Pick<ManagedClusters, 'apis' | 'states' | 'troubles'>,
  relay: Pick<Relay, 'clusters' | 'states'>,
  faults: ReadonlyMap<ClusterName, readonly Fault[]>,
): ServiceView['clusters'] {
  const known = relay.clusters();
  const all = new Map<ClusterName, ClusterState>([...states, ...relay.states()]);
  return Object.fromEntries(
    [...all].map(([name, state]): [string, ServiceClusterView] => {
      const { gauges, lastContactAt, tally } = known.get(name) ?? {};
      const why = troubles.get(name);
      return [
        name,
        {
          state: state.kind,
          ...(state.kind === 'disconnected' ? { since: state.since } : {}),
          ...defined({ why, lastContactAt }),
          breakerOpen: apis.get(name)?.breakerOpen ?? false,
          faults: faults.get(name) ?? [],
          ...(gauges?.counts ?? { nodes: 0, tainted: 0, pods: 0 }),
          down: tally?.cluster.nodes ?? 0,
          customTaints: tally?.customTaints.nodes ?? 0,
        },
      ];
    }),
  );
}
