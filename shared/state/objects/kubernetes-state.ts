import { clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { configMapPolicy } from './config-map-policy.ts';
import { ConfigMapQueue } from './config-map-queue.ts';
import { EVICTION_RULES } from './eviction-rules.ts';
import { kubernetesHistory } from './kubernetes-history.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';
import { Leadership } from './leadership.ts';
import { NODE_EVICTIONS, STATE_GROUP } from './node-eviction.ts';
import { LEASE_GROUP, LEASES } from './object-leases.ts';
import { objectPermits } from './object-permits.ts';
import { ObjectRulesStore } from './object-rules-store.ts';

/** The name of a cluster that holds its own state. */
export const IN_CLUSTER = clusterName('in-cluster');

/** The namespace of the state, if neither the command line nor a pod names one. */
export const DEFAULT_NAMESPACE = 'taintward';

export interface KeptInCluster
  extends Pick<ServiceState, 'store' | 'rulesStore' | 'permits' | 'history' | 'policies'> {
  readonly leases: Leadership;
  /** Removes state whose retention is over. Rejects with `StoreError`. */
  purge(now: EpochMs): Promise<void>;
  /** Operators' requests to the leader. */
  readonly requests: ConfigMapQueue;
  close(): void;
}

export interface KeptInClusterOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly historyDays: number;
  readonly clock: Clock;
}

/** Returns the state in that namespace. `led`: the store's options for a replica. Sends no request yet. */
export function keptInCluster(
  { connection, namespace, historyDays, clock }: KeptInClusterOptions,
  led: Pick<KubernetesStoreOptions, 'leads' | 'unreadable'> = {},
): KeptInCluster {
  // Use a separate transport, so that state does not wait behind evictions.
  const transport = new Transport(connection, clock);
  const objects = (group: string, resource: string) =>
    new RestObjects(transport, { group, resource, namespace });
  const store = new KubernetesStore({
    objects: objects(STATE_GROUP, NODE_EVICTIONS),
    own: IN_CLUSTER,
    historyDays,
    ...led,
  });
  return {
    store,
    rulesStore: new ObjectRulesStore({ objects: objects(STATE_GROUP, EVICTION_RULES), historyDays }),
    policies: configMapPolicy(objects('v1', 'configmaps'), namespace),
    permits: objectPermits(objects('v1', 'configmaps')),
    history: kubernetesHistory(store, objects('v1', 'configmaps')),
    leases: new Leadership(objects(LEASE_GROUP, LEASES), clock),
    purge: (now) => store.purge(now),
    requests: new ConfigMapQueue(objects('v1', 'configmaps'), `taintward-asked-${IN_CLUSTER}`),
    close: () => transport.close(),
  };
}

/** Returns the state in the cluster itself, which one replica at a time writes, and who that is. Throws `StoreError`. */
export function ledState(options: KeptInClusterOptions & { readonly log: Log }) {
  const { log } = options;
  const { requests, ...kept } = keptInCluster(options, {
    leads: () => leadership.mayAct(),
    unreadable: (reason) => log.error('state.unreadable', { error: reason }),
  });
  const leadership: Leadership = kept.leases;
  const state: ServiceState = {
    ...kept,
    leads: leadership.begun,
    whenRegained: leadership.whenRegained,
    requests: async () => (leadership.mayAct() ? requests.take() : []),
  };
  return { state, leadership };
}
