import { Counter, Gauge, type Registry } from 'prom-client';
import type { Emf } from '#shared/telemetry/emf.ts';
import { OVER_BUDGET, REFUSED_DELTAS } from '#shared/telemetry/metrics.ts';

/** What the relay counts. What CloudWatch is to ring an alarm for goes to `emf` too, where there is one. */
export function relayMetrics(registry: Registry, emf?: Emf) {
  const registers = [registry];
  const labelNames = ['cluster'] as const;
  const refused = new Counter({
    name: REFUSED_DELTAS,
    help: 'Deltas that a queue can never take (over 1 MiB) and that were dropped.',
    labelNames: ['queue'] as const,
    registers,
  });
  return {
    leaseHeld: new Gauge({
      name: 'taintward_relay_lease_held',
      help: '1 while this relay holds the lease of the cluster.',
      labelNames,
      registers,
    }),
    load: new Gauge({
      name: 'taintward_relay_load',
      help: 'What this relay has on its hands, in nodes: those of its clusters, and 100 for each cluster.',
      registers,
    }),
    /** Notes by how many nodes the relay is over its budget. */
    overBudget(nodes: number): void {
      emf?.put(OVER_BUDGET, 'Count', nodes);
      emf?.flush();
    },
    synced: new Gauge({
      name: 'taintward_relay_synced',
      help: '1 while nodes and pods of the cluster are listed and watched.',
      labelNames,
      registers,
    }),
    objects: new Gauge({
      name: 'taintward_relay_objects',
      help: 'Objects the relay knows of: nodes, tainted (nodes with a NoExecute taint), pods.',
      labelNames: [...labelNames, 'kind'] as const,
      registers,
    }),
    relists: new Counter({
      name: 'taintward_relay_relists_total',
      help: 'Complete lists taken, the first one included.',
      labelNames: [...labelNames, 'resource'] as const,
      registers,
    }),
    watchFailures: new Counter({
      name: 'taintward_relay_watch_failures_total',
      help: 'Lists and watches that failed.',
      labelNames: [...labelNames, 'resource'] as const,
      registers,
    }),
    sent: new Counter({
      name: 'taintward_relay_deltas_sent_total',
      help: 'Deltas that a queue took.',
      labelNames: ['queue'] as const,
      registers,
    }),
    /** Counts a delta that its queue can never take. */
    refused(queue: string): void {
      refused.inc({ queue });
      emf?.put(REFUSED_DELTAS, 'Count', 1);
      emf?.flush();
    },
    pending: new Gauge({
      name: 'taintward_relay_deltas_pending',
      help: 'Nodes and pods that a delta is still to be sent of.',
      labelNames: ['queue'] as const,
      registers,
    }),
  };
}

export type RelayMetrics = ReturnType<typeof relayMetrics>;
