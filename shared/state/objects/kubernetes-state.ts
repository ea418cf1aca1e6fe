import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { ConfigMapQueue } from './config-map-queue.ts';
import { EVICTION_RULES } from './eviction-rules.ts';
import { KubernetesHistory } from './kubernetes-history.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';
import { Leadership } from './leadership.ts';
import { NODE_EVICTIONS, STATE_GROUP } from './node-eviction.ts';
import { LEASE_GROUP, LEASES, ObjectLeases } from './object-leases.ts';
import { ObjectPermits } from './object-permits.ts';
import { ObjectRulesStore } from './object-rules-store.ts';
import { askedUnder, type KeptByCluster, namesOf, underNames } from './shown-name.ts';

/** The name under which a cluster is kept whose state is in itself, and shown unless it is given another one. */
export const IN_CLUSTER = clusterName('in-cluster');

/** Where it is kept, should neither the command line nor a pod say it. */
export const DEFAULT_NAMESPACE = 'taintward';

/** What is kept in a cluster, for whoever reads and writes it. */
export interface KeptInCluster extends KeptByCluster {
  /** The name by which the service that runs shows the cluster. Rejects with `StoreError`. */
  shownName(): Promise<ClusterName>;
  /** Removes what is to be kept no longer. Rejects with `StoreError`. */
  purge(now: EpochMs): Promise<void>;
  /** What operators ask of whoever leads. */
  readonly asked: ConfigMapQueue;
  /** Ends the connections. */
  close(): void;
}

export interface KeptInClusterOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly historyDays: number;
  readonly clock: Clock;
  /** By which name the cluster is shown; absent: as it is kept. */
  readonly shownAs?: ClusterName | undefined;
}

/** What is kept in that namespace; `led`: by a replica, as the store takes that. Asks nobody anything yet. */
export function keptInCluster(
  { connection, namespace, historyDays, clock, shownAs }: KeptInClusterOptions,
  led: Pick<KubernetesStoreOptions, 'leads' | 'unreadable'> = {},
): KeptInCluster {
  // Of its own: what is kept does not wait behind evictions.
  const transport = new Transport(connection, clock);
  const objects = (group: string, resource: string) =>
    new RestObjects(transport, { group, resource, namespace });
  const store = new KubernetesStore({
    ...{ objects: objects(STATE_GROUP, NODE_EVICTIONS), own: IN_CLUSTER, historyDays, ...led },
  });
  const leases = new ObjectLeases({
    objects: objects(LEASE_GROUP, LEASES),
    ...(shownAs === undefined ? {} : { shownAs }),
  });
  return {
    store,
    rulesStore: new ObjectRulesStore({ objects: objects(STATE_GROUP, EVICTION_RULES), historyDays }),
    permits: new ObjectPermits(objects('v1', 'configmaps')),
    history: new KubernetesHistory({ store, configMaps: objects('v1', 'configmaps') }),
    leases,
    shownName: async () => (await leases.shownName(IN_CLUSTER)) ?? IN_CLUSTER,
    purge: (now) => store.purge(now),
    asked: new ConfigMapQueue(objects('v1', 'configmaps'), `taintward-asked-${IN_CLUSTER}`),
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
  const { shownAs = IN_CLUSTER } = options;
  const names = namesOf(IN_CLUSTER, () => shownAs);
  const { asked, close, purge, ...stored } = keptInCluster(options, {
    leads: () => leadership.mayAct(),
    unreadable: (reason) => log.error('state.unreadable', { error: reason }),
  });
  const kept = underNames(stored, names);
  const leadership: Leadership = new Leadership({ leases: kept.leases, clock });
  const state: ServiceState = {
    ...kept,
    leases: leadership,
    leads: leadership.begun,
    reachesLeases: leadership.reachesLeases,
    whenRegained: leadership.whenRegained,
    asked: async () => (leadership.mayAct() ? askedUnder(await asked.take(), names) : []),
    ...{ purge, close },
  };
  return { state, leadership };
}
