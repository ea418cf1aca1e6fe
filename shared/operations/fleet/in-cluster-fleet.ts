import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { localUser } from '#shared/access/local-user.ts';
import { IN_CLUSTER, keptInCluster } from '#shared/state/objects/kubernetes-state.ts';
import { namesOf, underNames } from '#shared/state/objects/shown-name.ts';
import { Operator } from '#shared/state/operator.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { once } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Fleet } from './fleet.ts';
import { liveCluster } from './live-cluster.ts';
import { NO_DEAD_LETTERS } from './no-dead-letters.ts';

/** The chart gives it this name, whatever the release is called. */
const SERVICE_ACCOUNT = 'taintward';

/**
 * Makes the fleet of a service that keeps all state in its one cluster. The cluster is read by a kubeconfig
 * context, with the caller's permissions.
 */
export function inClusterFleet(access: LocalContextAccess, namespace: string, clock: Clock): Fleet {
  const connection = localContextConnection(access);
  const found = keptInCluster({ connection, namespace, historyDays: HISTORY_DAYS, clock });
  let name = IN_CLUSTER;
  // If the caller may not read the Lease, the cluster has the name under which its state is stored.
  const known = once(async () => {
    name = await found.shownName().catch(() => IN_CLUSTER);
    return name;
  });
  const kept = underNames(
    found,
    namesOf(IN_CLUSTER, () => name),
  );
  return {
    kind: 'in-cluster',
    where: `namespace ${namespace} of context ${access.context}`,
    rulesStore: kept.rulesStore,
    store: kept.store,
    history: kept.history,
    leases: kept.leases,
    serviceAccount: { namespace, name: SERVICE_ACCOUNT },
    deadLetters: NO_DEAD_LETTERS,
    clusters: async () => [await known()],
    manages: async (cluster) => cluster === (await known()),
    cluster: async (name) => liveCluster(name, localContextConnection(access), clock),
    backlog: async () => undefined,
    service: async () => undefined,
    operator: async () => new Operator({ rulesStore: kept.rulesStore, clock, who: localUser() }),
    dueQueue: async () => found.asked,
    close: () => found.close(),
  };
}
