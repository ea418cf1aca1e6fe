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

/**
 * The stored name of a cluster that holds its own state. It is also the displayed name, unless the cluster is given
 * another.
 */
export const IN_CLUSTER = clusterName('in-cluster');

/** The namespace of the state, if neither the command line nor a pod names one. */
export const DEFAULT_NAMESPACE = 'taintward';

/** The state in a cluster, for its readers and writers. */
export interface KeptInCluster extends KeptByCluster {
  /** Resolves with the name under which the running service displays the cluster. Rejects with `StoreError`. */
  shownName(): Promise<ClusterName>;
  /** Removes state whose retention is over. Rejects with `StoreError`. */
  purge(now: EpochMs): Promise<void>;
  /** Operators' requests to the leader. */
  readonly asked: ConfigMapQueue;
  /** Closes the connections. */
  close(): void;
}

export interface KeptInClusterOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly historyDays: number;
  readonly clock: Clock;
  /** The displayed name of the cluster. Absent: the stored name. */
  readonly shownAs?: ClusterName | undefined;
}

/** Returns the state in that namespace. `led`: the store's options for a replica. Sends no request yet. */
export function keptInCluster(
  { connection, namespace, historyDays, clock, shownAs }: KeptInClusterOptions,
  led: Pick<KubernetesStoreOptions, 'leads' | 'unreadable'> = {},
): KeptInCluster {
  // Use a separate transport, so that state does not wait behind evictions.
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

/** The state of a replica of the service, and its leadership. */
export interface LedState {
  readonly state: ServiceState;
  readonly leadership: Leadership;
}

/** Returns the state in the cluster itself, which one replica at a time writes. Throws `StoreError`. */
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
