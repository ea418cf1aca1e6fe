import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { localUser } from '#shared/access/local-user.ts';
import { IN_CLUSTER, keptInCluster } from '#shared/state/objects/kubernetes-state.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';
import { MAX_HISTORY_DAYS } from '#shared/state/stored.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Fleet } from './fleet.ts';
import { liveCluster } from './live-cluster.ts';

/** The chart gives it this name, whatever the release is called. */
const SERVICE_ACCOUNT = 'taintward';

/** All state is in the one cluster, which is read by a kubeconfig context, with the caller's permissions. */
export function inClusterFleet(access: LocalContextAccess, namespace: string, clock: Clock): Fleet {
  const connection = localContextConnection(access);
  // Only the leader knows how long audit entries are kept, so a command removes none that it may keep.
  const kept = keptInCluster({ connection, namespace, historyDays: MAX_HISTORY_DAYS, clock });
  return {
    kind: 'in-cluster',
    where: `namespace ${namespace} of context ${access.context}`,
    rulesStore: kept.rulesStore,
    store: kept.store,
    history: kept.history,
    leases: kept.leases,
    serviceAccount: { namespace, name: SERVICE_ACCOUNT },
    clusters: async () => [IN_CLUSTER],
    manages: async (cluster) => cluster === IN_CLUSTER,
    cluster: async () => liveCluster(localContextConnection(access), clock),
    backlog: async () => undefined,
    service: async () => undefined,
    operator: async () => ({ rulesStore: kept.rulesStore, clock, actor: localUser() }),
    dueQueue: async () => kept.requests,
    close: () => kept.close(),
  };
}
