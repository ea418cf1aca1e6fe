import type { ServiceState } from '#functions/local/service-state.ts';
import type { LeaseReader, Leases } from '#shared/clusters/lease.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/connection.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { Transport } from '#shared/kubernetes/transport.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Clock, systemStopwatch } from '#shared/time/clock.ts';
import { AskedWork } from './asked-work.ts';
import { EVICTION_RULES } from './eviction-rules.ts';
import { KubernetesHistory } from './kubernetes-history.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';
import { Leadership } from './leadership.ts';
import { NODE_EVICTIONS, STATE_GROUP } from './node-eviction.ts';
import { LEASE_GROUP, LEASES, ObjectLeases } from './object-leases.ts';
import { ObjectPermits } from './object-permits.ts';
import { ObjectRulebook } from './object-rulebook.ts';

/** The name under which a cluster is managed whose state is in itself. */
export const IN_CLUSTER = clusterName('in-cluster');

/** Where it is kept, should neither the command line nor a pod say it. */
export const DEFAULT_NAMESPACE = 'taintward';

/** What is kept in a cluster, for whoever reads and writes it. */
export interface KeptInCluster {
  readonly store: KubernetesStore;
  readonly rulebook: ObjectRulebook;
  readonly permits: ObjectPermits;
  readonly history: KubernetesHistory;
  readonly leases: Leases & Pick<LeaseReader, 'epoch'>;
  /** What operators ask of whoever leads. */
  readonly asked: AskedWork;
  /** Ends the connections. */
  close(): void;
}

export interface KeptInClusterOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly historyDays: number;
  readonly clock: Clock;
}

/** What is kept in that namespace; `led`: by a replica, as the store takes that. Asks nobody anything yet. */
export function keptInCluster(
  { connection, namespace, historyDays, clock }: KeptInClusterOptions,
  led: Pick<KubernetesStoreOptions, 'leads' | 'unreadable'> = {},
): KeptInCluster {
  // Of its own: what is kept does not wait behind evictions.
  const transport = new Transport(connection, clock);
  const objects = (group: string, resource: string) =>
    new RestObjects(transport, { group, resource, namespace });
  const store = new KubernetesStore({
    ...{ objects: objects(STATE_GROUP, NODE_EVICTIONS), own: IN_CLUSTER, historyDays, ...led },
  });
  return {
    store,
    rulebook: new ObjectRulebook({ objects: objects(STATE_GROUP, EVICTION_RULES), historyDays }),
    permits: new ObjectPermits(objects('v1', 'configmaps')),
    history: new KubernetesHistory({ store, configMaps: objects('v1', 'configmaps') }),
    leases: new ObjectLeases({ objects: objects(LEASE_GROUP, LEASES) }),
    asked: new AskedWork(objects('v1', 'configmaps'), `taintward-asked-${IN_CLUSTER}`),
    close: () => transport.close(),
  };
}

/** The state of a replica of the service, and whether it leads. */
export interface LedState {
  readonly state: ServiceState;
  readonly leadership: Leadership;
}

/** The state in the cluster itself, which one replica at a time writes. Throws `StoreError`. */
export function ledState(options: KeptInClusterOptions & { readonly log: Log }): LedState {
  const { clock, log } = options;
  const { leases, asked, ...kept } = keptInCluster(options, {
    leads: () => leadership.mayAct(),
    unreadable: (reason) => log.error('state.unreadable', { error: reason }),
  });
  const leadership: Leadership = new Leadership({ leases, clock, stopwatch: systemStopwatch });
  const state: ServiceState = {
    ...kept,
    leases: leadership,
    leads: leadership.begun,
    reachesLeases: leadership.reachesLeases,
    whenRegained: leadership.whenRegained,
    asked: async () => (leadership.mayAct() ? asked.take() : []),
    purge: (now) => kept.store.purge(now),
  };
  return { state, leadership };
}
