import { type ClusterName, clusterName, type NodeRef } from '#shared/eviction/identity.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { Lease, LeaseRecord } from '#shared/state/lease.ts';
import type { AuditEntry, FileRulesStore } from '#shared/state/rules-store.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { ServiceState, ServiceStore } from '#shared/state/service-state.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';

/** The parts of a service's state that are stored by cluster. */
export type KeptByCluster = Pick<ServiceState, 'store' | 'rulesStore' | 'permits' | 'history' | 'leases'>;

/** Converts between the stored and the displayed name of a cluster. All other clusters have one name for both. */
export interface Names {
  stored(cluster: ClusterName): ClusterName;
  shown(cluster: ClusterName): ClusterName;
}

/** Returns the two names of one cluster. */
export const namesOf = (stored: ClusterName, shown: () => ClusterName): Names => ({
  stored: (cluster) => (cluster === shown() ? stored : cluster),
  shown: (cluster) => (cluster === stored ? shown() : cluster),
});

type OfCluster = { readonly cluster: ClusterName };

const ofShown = <T extends OfCluster>(of: T, { shown }: Names): T => ({ ...of, cluster: shown(of.cluster) });

/**
 * Returns the state under the displayed names of clusters. The names of objects stay the same. A service can
 * therefore change a cluster's name at any time and keep its state.
 */
export function underNames(kept: KeptByCluster, names: Names): KeptByCluster {
  return {
    store: storeUnder(kept.store, names),
    rulesStore: rulesStoreUnder(kept.rulesStore, names),
    permits: { take: (cluster, ...rest) => kept.permits.take(names.stored(cluster), ...rest) },
    history: historyUnder(kept.history, names),
    leases: leasesUnder(kept.leases, names),
  };
}

function storeUnder(store: ServiceStore, names: Names): ServiceStore {
  const stored = (ref: NodeRef): NodeRef => ({ ...ref, cluster: names.stored(ref.cluster) });
  return {
    async load(ref, ...rest) {
      return { ...(await store.load(stored(ref), ...rest)), ref };
    },
    commit: (ref, ...rest) => store.commit(stored(ref), ...rest),
    end: (ref, ...rest) => store.end(stored(ref), ...rest),
    taintedNodes: (cluster) => store.taintedNodes(names.stored(cluster)),
    async *upcoming() {
      for await (const each of store.upcoming()) yield { ...each, ref: ofShown(each.ref, names) };
    },
    async countdowns(limit) {
      const { soonest, ...rest } = await store.countdowns(limit);
      return { ...rest, soonest: soonest.map((each) => ({ ...each, ref: ofShown(each.ref, names) })) };
    },
    standings: () => store.standings().map((each) => ofShown(each, names)),
  };
}

function rulesStoreUnder(rulesStore: FileRulesStore, names: Names): FileRulesStore {
  const { stored, shown } = names;
  const storedEntry = (entry: AuditEntry): AuditEntry =>
    entry.cluster === undefined ? entry : { ...entry, cluster: stored(entry.cluster) };
  return {
    read: (cluster, ...rest) => rulesStore.read(stored(cluster), ...rest),
    async readAll(clusters) {
      const found = await rulesStore.readAll(clusters.map(stored));
      return new Map([...found].map(([cluster, storedRules]) => [shown(cluster), storedRules]));
    },
    changeOrders: (cluster, found, next, entry) =>
      rulesStore.changeOrders(stored(cluster), found, next, storedEntry(entry)),
    fleetStop: () => rulesStore.fleetStop(),
    changeFleetStop: (found, next, entry) => rulesStore.changeFleetStop(found, next, storedEntry(entry)),
    changeGuard: (cluster, found, trips, entry) =>
      rulesStore.changeGuard(stored(cluster), found, trips, entry && storedEntry(entry)),
    touchGuard: (cluster, ...rest) => rulesStore.touchGuard(stored(cluster), ...rest),
    note: (entry) => rulesStore.note(storedEntry(entry)),
    async audit({ cluster, ...query }) {
      const of = cluster === undefined ? {} : { cluster: stored(cluster) };
      const entries = await rulesStore.audit({ ...query, ...of });
      return entries.map((entry) =>
        entry.cluster === undefined ? entry : { ...entry, cluster: shown(entry.cluster) },
      );
    },
    appliedFile: (cluster) => rulesStore.appliedFile(stored(cluster)),
    noteFile: (cluster, found, file, change) =>
      rulesStore.noteFile(
        stored(cluster),
        found,
        file,
        change && { ...change, entry: storedEntry(change.entry) },
      ),
  };
}

function historyUnder(history: KeptByCluster['history'], names: Names): KeptByCluster['history'] {
  const { stored } = names;
  return {
    async *entries(query) {
      for await (const entry of history.entries({ ...query, cluster: stored(query.cluster) }))
        yield { ...entry, ref: ofShown(entry.ref, names) };
    },
    noteGone: (cluster, pods) => history.noteGone(stored(cluster), pods),
    nodesEvictedFrom: (cluster, from) => history.nodesEvictedFrom(stored(cluster), from),
  };
}

function leasesUnder(leases: KeptByCluster['leases'], names: Names): KeptByCluster['leases'] {
  const { stored } = names;
  const storedLease = (lease: Lease): Lease => ({ ...lease, cluster: stored(lease.cluster) });
  const shownLease = <T extends LeaseRecord>(lease: T | undefined): T | undefined =>
    lease && ofShown(lease, names);
  return {
    look: async (cluster, ...rest) => shownLease(await leases.look(stored(cluster), ...rest)),
    take: async (cluster, ...rest) => shownLease(await leases.take(stored(cluster), ...rest)),
    renew: async (lease, report) => shownLease(await leases.renew(storedLease(lease), report)),
    bid: (lease, bid) => leases.bid(storedLease(lease), bid),
    reportStuck: (lease, pods) => leases.reportStuck(storedLease(lease), pods),
    stuck: (cluster) => leases.stuck(stored(cluster)),
    release: (lease) => leases.release(storedLease(lease)),
    epoch: (cluster) => leases.epoch(stored(cluster)),
  };
}

/** Returns messages with the displayed name of the cluster. Their senders may use the stored name. */
export function askedUnder(
  messages: readonly OutgoingMessage[],
  { shown }: Names,
): readonly OutgoingMessage[] {
  return messages.map((message) => {
    const { cluster, ...rest } = fieldsOf(parsedJson(message.body));
    if (typeof cluster !== 'string' || shown(clusterName(cluster)) === cluster) return message;
    return { ...message, body: JSON.stringify({ ...rest, cluster: shown(clusterName(cluster)) }) };
  });
}
