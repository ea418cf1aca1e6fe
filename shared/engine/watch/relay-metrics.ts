import { Counter, Gauge, type Registry } from 'prom-client';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { FAULT_TYPES, type Fault } from '#shared/state/fault.ts';
import type { MetricSink } from '#shared/telemetry/metrics.ts';
import {
  CLOCK_SKEW,
  GUARD_TRIPS,
  NOBODY_EVICTS,
  OVER_BUDGET,
  REFUSED_DELTAS,
  STUCK_PODS,
  TAKEOVERS_WITHHELD,
  UNSENT_DELTAS,
} from '#shared/telemetry/metrics.ts';
import type { ClusterRelayState, ModeInForce } from './cluster-state.ts';
import type { ViewCounts } from './cluster-view.ts';
import { DELTA_QUEUES } from './ports.ts';
import type { TakeoverState } from './takeover-heartbeat.ts';

const RESOURCES = ['nodes', 'pods'] as const;
const SCOPES: readonly Trip['scope'][] = ['cluster', 'zone', 'people'];
const MODES: readonly ModeInForce[] = ['observe', 'enforce', 'paused', 'stopped'];

/** A relay's state for a cluster, and the size of its view. */
export interface ClusterStanding {
  readonly cluster: ClusterName;
  readonly state: ClusterRelayState;
  /** `undefined`: this relay doesn't have it. */
  readonly mode: ModeInForce | undefined;
  readonly counts: ViewCounts;
  /** Number of evicted pods that are stuck terminating. */
  readonly stuck: number;
  /** The guard's active trips. */
  readonly trips: readonly Trip[];
  readonly takeover: TakeoverState;
  /** Pods are overdue there, and no controller evicts them. */
  readonly nobodyEvicts: boolean;
  readonly faults: readonly Fault[];
}

/** What the relay counts. What CloudWatch alarms need is put into `emf` too, if it is given. */
export function relayMetrics(registry: Registry, emf?: MetricSink) {
  const registers = [registry];
  const labelNames = ['cluster'] as const;
  const refused = new Counter({
    name: REFUSED_DELTAS,
    help: 'Deltas that a queue rejected permanently (over 1 MiB). They are dropped.',
    labelNames: ['queue'] as const,
    registers,
  });
  const unsent = new Counter({
    name: UNSENT_DELTAS,
    help: 'Failed attempts to send a delta. Failed deltas are retried with the then current state.',
    labelNames: ['queue'] as const,
    registers,
  });
  // Prometheus sees no increase in a series that begins with 1.
  for (const counter of [refused, unsent]) for (const queue of DELTA_QUEUES) counter.inc({ queue }, 0);
  const overBudget = new Gauge({
    name: OVER_BUDGET,
    help: 'Nodes that the relay follows beyond its capacity, because no other relay is available.',
    registers,
  });
  let standings: () => readonly ClusterStanding[] = () => [];
  /** Collected at each scrape, so a cluster's series exists for exactly as long as the cluster does. */
  const perCluster = (name: string, help: string, value: (standing: ClusterStanding) => number) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const standing of standings()) this.set({ cluster: standing.cluster }, value(standing));
      },
    });
  perCluster(
    'taintward_relay_lease_held',
    '1 while this relay holds the lease of the cluster.',
    ({ state }) => (state.kind === 'standby' ? 0 : 1),
  );
  perCluster(
    'taintward_relay_synced',
    '1 while all nodes of the cluster, and the pods of its tainted nodes, are listed and watched.',
    ({ state }) => (state.kind === 'live' ? 1 : 0),
  );
  perCluster(
    'taintward_cluster_disconnected',
    '1 while this relay holds the lease of the cluster and is disconnected from its API server.',
    ({ state }) => (state.kind === 'disconnected' ? 1 : 0),
  );
  perCluster(
    STUCK_PODS,
    'Evicted pods of the cluster that are stuck terminating for more than a minute after their grace period.',
    ({ stuck }) => stuck,
  );
  perCluster(
    TAKEOVERS_WITHHELD,
    '1 while the takeover heartbeat of the cluster is suspended. After its timeout, the built-in controller evicts there.',
    ({ takeover }) => (takeover === 'withheld' ? 1 : 0),
  );
  perCluster(
    NOBODY_EVICTS,
    '1 while pods of the cluster are more than ten minutes overdue, the built-in controller does not evict, and the policy forbids Taintward to evict.',
    ({ nobodyEvicts }) => (nobodyEvicts ? 1 : 0),
  );
  new Gauge({
    name: 'taintward_relay_objects',
    help: 'Objects in the view of the relay: nodes, tainted (nodes with a NoExecute taint), and pods (of tainted nodes).',
    labelNames: [...labelNames, 'kind'] as const,
    registers,
    collect() {
      this.reset();
      for (const { cluster, counts } of standings()) {
        const { nodes, tainted, pods } = counts;
        for (const [kind, count] of Object.entries({ nodes, tainted, pods }))
          this.set({ cluster, kind }, count);
      }
    },
  });
  new Gauge({
    name: 'taintward_cluster_faults',
    help: 'Faults of the cluster that its lease reports, by type.',
    labelNames: [...labelNames, 'type'] as const,
    registers,
    collect() {
      this.reset();
      for (const { cluster, state, faults } of standings()) {
        if (state.kind === 'standby' && faults.length === 0) continue;
        for (const type of FAULT_TYPES)
          this.set({ cluster, type }, faults.filter((fault) => fault.type === type).length);
      }
    },
  });
  new Gauge({
    name: GUARD_TRIPS,
    help: 'Active trips of the guard, by scope: 0 or 1 for the cluster and for custom taints, the number of tripped zones for zones.',
    labelNames: [...labelNames, 'scope'] as const,
    registers,
    collect() {
      this.reset();
      for (const { cluster, state, trips } of standings()) {
        if (state.kind === 'standby') continue;
        for (const scope of SCOPES)
          this.set({ cluster, scope }, trips.filter((trip) => trip.scope === scope).length);
      }
    },
  });
  new Gauge({
    name: 'taintward_cluster_mode',
    help: 'Mode of the cluster: 1 for the current mode (observe, enforce, paused, or stopped), and 0 for the others.',
    labelNames: [...labelNames, 'mode'] as const,
    registers,
    collect() {
      this.reset();
      for (const { cluster, mode: inForce } of standings()) {
        if (inForce === undefined) continue;
        for (const mode of MODES) this.set({ cluster, mode }, mode === inForce ? 1 : 0);
      }
    },
  });
  const lists = new Counter({
    name: 'taintward_relay_lists_total',
    help: 'Complete lists of all nodes, and of the pods of one node.',
    labelNames: [...labelNames, 'resource'] as const,
    registers,
  });
  const watchFailures = new Counter({
    name: 'taintward_relay_watch_failures_total',
    help: 'Failed lists and watches.',
    labelNames: [...labelNames, 'resource'] as const,
    registers,
  });
  const counters = [lists, watchFailures];
  const labelsOf = (cluster: ClusterName) => RESOURCES.map((resource) => ({ cluster, resource }));
  const builtInEvictions = new Counter({
    name: 'taintward_built_in_evictions_total',
    help: 'Pods that the built-in controller, or another taint manager, evicted although Taintward held or excluded them.',
    labelNames,
    registers,
  });
  return {
    lists,
    watchFailures,
    builtInEvictions,
    /** Sets the clusters that the gauges report. */
    observe(clusters: () => readonly ClusterStanding[]): void {
      standings = clusters;
    },
    /** Initializes the counters of a cluster with 0. */
    begin(cluster: ClusterName): void {
      for (const counter of counters) for (const labels of labelsOf(cluster)) counter.inc(labels, 0);
      builtInEvictions.inc({ cluster }, 0);
    },
    /** Removes the counters of a cluster that is no longer followed. */
    end(cluster: ClusterName): void {
      for (const counter of counters) for (const labels of labelsOf(cluster)) counter.remove(labels);
      builtInEvictions.remove({ cluster });
    },
    load: new Gauge({
      name: 'taintward_relay_load',
      help: 'Load of this relay in nodes: the nodes of its clusters, plus 100 for each cluster.',
      registers,
    }),
    /** Reports the nodes by which the relay exceeds its capacity. */
    overBudget(nodes: number): void {
      overBudget.set(nodes);
      if (nodes === 0) return;
      emf?.put(OVER_BUDGET, 'Count', nodes);
      emf?.flush();
    },
    /** Reports the evicted pods that are stuck terminating, in all clusters whose lease the relay holds. */
    podsStuck(pods: number): void {
      emf?.put(STUCK_PODS, 'Count', pods);
      emf?.flush();
    },
    /** Reports the number of clusters whose takeover heartbeat is suspended. */
    takeoversWithheld(clusters: number): void {
      emf?.put(TAKEOVERS_WITHHELD, 'Count', clusters);
      emf?.flush();
    },
    /** Reports the number of clusters with overdue pods that no controller evicts. */
    nobodyEvicts(clusters: number): void {
      emf?.put(NOBODY_EVICTS, 'Count', clusters);
      emf?.flush();
    },
    /** Reports the clock skew in seconds: the largest between an API server and this process. */
    clockSkewed(seconds: number): void {
      emf?.put(CLOCK_SKEW, 'Seconds', seconds);
      emf?.flush();
    },
    /** Reports the active trips of the guard, in all clusters whose lease the relay holds. */
    guardTripped(trips: number): void {
      emf?.put(GUARD_TRIPS, 'Count', trips);
      emf?.flush();
    },
    sent: new Counter({
      name: 'taintward_relay_deltas_sent_total',
      help: 'Deltas sent to a queue.',
      labelNames: ['queue'] as const,
      registers,
    }),
    /** Counts a delta that its queue rejected permanently. */
    refused(queue: string): void {
      refused.inc({ queue });
      emf?.put(REFUSED_DELTAS, 'Count', 1);
      emf?.flush();
    },
    /** Counts deltas that their queue rejected temporarily. */
    unsent(queue: string, deltas: number): void {
      unsent.inc({ queue }, deltas);
      emf?.put(UNSENT_DELTAS, 'Count', deltas);
      emf?.flush();
    },
    pending: new Gauge({
      name: 'taintward_relay_deltas_pending',
      help: 'Nodes and pods with a delta that is not sent yet.',
      labelNames: ['queue'] as const,
      registers,
    }),
  };
}

export type RelayMetrics = ReturnType<typeof relayMetrics>;
