import { Counter, Gauge, type Registry } from 'prom-client';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { FAULT_TYPES, type Fault } from '#shared/state/fault.ts';
import {
  GUARD_TRIPS,
  type MetricSink,
  OVER_BUDGET,
  REFUSED_DELTAS,
  STUCK_PODS,
  UNSENT_DELTAS,
} from '#shared/telemetry/metrics.ts';
import type { ClusterRelayState, ModeInForce } from './cluster-state.ts';
import type { ViewCounts } from './cluster-view.ts';
import { DELTA_QUEUES } from './ports.ts';

const RESOURCES = ['nodes', 'pods'] as const;
const SCOPES: readonly Trip['scope'][] = ['cluster', 'zone', 'customTaints'];
const MODES: readonly ModeInForce[] = ['observe', 'enforce', 'stopped'];

export interface ClusterGauges {
  readonly cluster: ClusterName;
  readonly state: ClusterRelayState;
  readonly mode: ModeInForce | undefined;
  readonly counts: ViewCounts;
  readonly stuck: number;
  readonly trips: readonly Trip[];
  readonly faults: readonly Fault[];
}

export type SessionGauges = Omit<ClusterGauges, 'cluster' | 'state' | 'faults'>;

/** The gauges of a cluster whose lease another relay holds, or whose rules are not read yet. */
export const NO_SESSION: SessionGauges = {
  mode: undefined,
  counts: { nodes: 0, tainted: 0, pods: 0 },
  stuck: 0,
  trips: [],
};

interface ClusterGauge {
  readonly name: string;
  readonly help: string;
  /** Absent: the cluster is the only label. */
  readonly label?: string;
  /** Returns the value, or the values by that label; `undefined`: the cluster has no series. */
  value(gauges: ClusterGauges): number | Readonly<Record<string, number>> | undefined;
}

const CLUSTER_GAUGES: readonly ClusterGauge[] = [
  {
    name: 'taintward_relay_lease_held',
    help: '1 while this relay holds the lease of the cluster, and can renew it.',
    value: ({ state, faults }) =>
      state.kind === 'standby' || faults.some(({ type }) => type === 'lease-unavailable') ? 0 : 1,
  },
  {
    name: 'taintward_relay_synced',
    help: '1 while all nodes of the cluster, and the pods of its tainted nodes, are listed and watched.',
    value: ({ state }) => (state.kind === 'live' ? 1 : 0),
  },
  {
    name: 'taintward_cluster_disconnected',
    help: '1 while this relay holds the lease of the cluster and is disconnected from its API server.',
    value: ({ state }) => (state.kind === 'disconnected' ? 1 : 0),
  },
  {
    name: STUCK_PODS,
    help: 'Evicted pods of the cluster that are stuck terminating for more than a minute after their grace period.',
    value: ({ stuck }) => stuck,
  },
  {
    name: 'taintward_relay_objects',
    help: 'Objects in the view of the relay: nodes, tainted (nodes with a NoExecute taint), and pods (of tainted nodes).',
    label: 'kind',
    value: ({ counts: { nodes, tainted, pods } }) => ({ nodes, tainted, pods }),
  },
  {
    name: 'taintward_cluster_faults',
    help: 'Faults of the cluster that its lease reports, by type.',
    label: 'type',
    value: ({ state, faults }) =>
      state.kind === 'standby' && faults.length === 0
        ? undefined
        : numbers(FAULT_TYPES, (type) => faults.filter((fault) => fault.type === type).length),
  },
  {
    name: GUARD_TRIPS,
    help: 'Active trips of the guard, by scope: 0 or 1 for the cluster and for custom taints, the number of tripped zones for zones.',
    label: 'scope',
    value: ({ state, trips }) =>
      state.kind === 'standby'
        ? undefined
        : numbers(SCOPES, (scope) => trips.filter((trip) => trip.scope === scope).length),
  },
  {
    name: 'taintward_cluster_mode',
    help: 'Mode of the cluster: 1 for the current mode (observe, enforce, or stopped), and 0 for the others.',
    label: 'mode',
    value: ({ mode: inForce }) =>
      inForce === undefined ? undefined : numbers(MODES, (mode) => (mode === inForce ? 1 : 0)),
  },
];

const numbers = <Key extends string>(
  keys: readonly Key[],
  numberOf: (key: Key) => number,
): Readonly<Record<string, number>> => Object.fromEntries(keys.map((key) => [key, numberOf(key)]));

/** Gauges are collected at each scrape, so a cluster's series exists for exactly as long as the cluster does. */
function registerGauges(registry: Registry, gaugesOfClusters: () => readonly ClusterGauges[]): void {
  for (const { name, help, label, value } of CLUSTER_GAUGES) {
    new Gauge({
      name,
      help,
      labelNames: ['cluster', ...(label === undefined ? [] : [label])],
      registers: [registry],
      collect() {
        this.reset();
        for (const gauges of gaugesOfClusters()) {
          const { cluster } = gauges;
          const found = value(gauges) ?? {};
          if (typeof found === 'number') this.set({ cluster }, found);
          else
            for (const [key, each] of Object.entries(found)) this.set({ cluster, [label ?? '']: key }, each);
        }
      },
    });
  }
}

function clusterCounters(registry: Registry) {
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const lists = counter(
    'taintward_relay_lists_total',
    'Complete lists of all nodes, and of the pods of one node.',
    ['cluster', 'resource'] as const,
  );
  const watchFailures = counter('taintward_relay_watch_failures_total', 'Failed lists and watches.', [
    'cluster',
    'resource',
  ] as const);
  const builtInEvictions = counter(
    'taintward_built_in_evictions_total',
    'Pods that the built-in controller, or another taint manager, evicted although Taintward held or excluded them.',
    ['cluster'] as const,
  );
  const labelsOf = (cluster: ClusterName) => RESOURCES.map((resource) => ({ cluster, resource }));
  return {
    lists,
    watchFailures,
    builtInEvictions,
    begin(cluster: ClusterName): void {
      for (const counter of [lists, watchFailures])
        for (const labels of labelsOf(cluster)) counter.inc(labels, 0);
      builtInEvictions.inc({ cluster }, 0);
    },
    end(cluster: ClusterName): void {
      for (const counter of [lists, watchFailures])
        for (const labels of labelsOf(cluster)) counter.remove(labels);
      builtInEvictions.remove({ cluster });
    },
  };
}

function deltaMetrics(registry: Registry, put: Put) {
  const labels = { labelNames: ['queue'] as const, registers: [registry] };
  const rejected = new Counter({
    name: REFUSED_DELTAS,
    help: 'Deltas that a queue rejected permanently (over 1 MiB). They are dropped.',
    ...labels,
  });
  const unsent = new Counter({
    name: UNSENT_DELTAS,
    help: 'Failed attempts to send a delta. Failed deltas are retried with the then current state.',
    ...labels,
  });
  // Prometheus sees no increase in a series that begins with 1.
  for (const counter of [rejected, unsent]) for (const queue of DELTA_QUEUES) counter.inc({ queue }, 0);
  return {
    sent: new Counter({
      name: 'taintward_relay_deltas_sent_total',
      help: 'Deltas sent to a queue.',
      ...labels,
    }),
    refused(queue: string): void {
      rejected.inc({ queue });
      put(REFUSED_DELTAS, 1);
    },
    unsent(queue: string, deltas: number): void {
      unsent.inc({ queue }, deltas);
      put(UNSENT_DELTAS, deltas);
    },
    pending: new Gauge({
      name: 'taintward_relay_deltas_pending',
      help: 'Nodes and pods with a delta that is not sent yet.',
      ...labels,
    }),
  };
}

type Put = MetricSink['put'];

/** Creates the relay's metrics. Values that CloudWatch alarms need are put into `emf` too, if it is given. */
export function relayMetrics(registry: Registry, emf?: MetricSink) {
  const put: Put = (...metric) => {
    emf?.put(...metric);
    emf?.flush?.();
  };
  let gaugesOfClusters: () => readonly ClusterGauges[] = () => [];
  registerGauges(registry, () => gaugesOfClusters());
  const overBudget = new Gauge({
    name: OVER_BUDGET,
    help: 'Nodes that the relay follows beyond its capacity, because no other relay is available.',
    registers: [registry],
  });
  return {
    ...clusterCounters(registry),
    ...deltaMetrics(registry, put),
    observe(clusters: () => readonly ClusterGauges[]): void {
      gaugesOfClusters = clusters;
    },
    load: new Gauge({
      name: 'taintward_relay_load',
      help: 'Load of this relay in nodes: the nodes of its clusters, plus 100 for each cluster.',
      registers: [registry],
    }),
    overBudget(nodes: number): void {
      overBudget.set(nodes);
      if (nodes > 0) put(OVER_BUDGET, nodes);
    },
    put,
  };
}

export type RelayMetrics = ReturnType<typeof relayMetrics>;
