import type { Context } from 'aws-lambda';
import { type Metric, Registry } from 'prom-client';
import { dueMetrics } from '#functions/agent/due-metrics.ts';
import { createHandler as createHeartbeat } from '#functions/heartbeat/handler.ts';
import { Emf } from '#shared/aws/emf.ts';
import { prometheusEvictionMetrics, stateMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import { DELTA_QUEUES } from '#shared/engine/watch/ports.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { logTo } from '#shared/telemetry/log.ts';
import * as names from '#shared/telemetry/metrics.ts';

/** The processes that count a metric. */
export type Counted = 'relay' | 'agent' | 'npm start';
export type Writer = 'relay' | 'evict' | 'heartbeat';

/** A metric, in Prometheus, CloudWatch or both. */
export interface CatalogueEntry {
  readonly name: string;
  /** Absent: Prometheus does not have it. */
  readonly prometheus?: {
    readonly type: string;
    readonly labels: readonly string[];
    readonly help: string;
    readonly servedBy: readonly Counted[];
  };
  /** Absent: CloudWatch does not have it. */
  readonly cloudWatch?: { readonly unit: string; readonly writtenBy: readonly Writer[] };
}

/** Returns all metrics, by name: those in the registries, and those that are written when every possible value is reported. */
export async function metricsCatalogue(): Promise<readonly CatalogueEntry[]> {
  const served = await servedMetrics();
  const written = await writtenMetrics();
  const names = [...new Set([...served.keys(), ...written.keys()])].sort();
  return names.map((name) => {
    const [prometheus, cloudWatch] = [served.get(name), written.get(name)];
    return { name, ...(prometheus ? { prometheus } : {}), ...(cloudWatch ? { cloudWatch } : {}) };
  });
}

/** The metrics that each process registers. */
const REGISTRIES: Readonly<Record<Counted, (registry: Registry) => void>> = {
  relay: (registry) => void relayMetrics(registry),
  agent(registry) {
    relayMetrics(registry);
    prometheusEvictionMetrics(registry);
    dueMetrics(registry);
  },
  'npm start'(registry) {
    relayMetrics(registry);
    prometheusEvictionMetrics(registry);
    stateMetrics(registry, { states: () => [] });
  },
};

async function servedMetrics(): Promise<ReadonlyMap<string, NonNullable<CatalogueEntry['prometheus']>>> {
  const served = new Map<string, NonNullable<CatalogueEntry['prometheus']>>();
  for (const [counted, register] of Object.entries(REGISTRIES)) {
    const registry = new Registry();
    register(registry);
    // prom-client exposes the names of labels at run time only.
    const metrics = registry.getMetricsAsArray() as unknown as readonly (Metric & {
      labelNames: readonly string[];
    })[];
    for (const metric of metrics) {
      const { name, type, help } = await metric.get();
      const servedBy = [...(served.get(name)?.servedBy ?? []), counted as Counted];
      served.set(name, { type: String(type), labels: metric.labelNames, help, servedBy });
    }
  }
  return served;
}

async function writtenMetrics(): Promise<ReadonlyMap<string, NonNullable<CatalogueEntry['cloudWatch']>>> {
  const written = new Map<string, NonNullable<CatalogueEntry['cloudWatch']>>();
  const emfOf = (writtenBy: Writer) =>
    new Emf({
      namespace: 'taintward',
      clock: { now: () => 0 },
      write: (line) => {
        const [{ Metrics }] = JSON.parse(line)._aws.CloudWatchMetrics;
        for (const { Name, Unit } of Metrics) {
          const before = written.get(Name)?.writtenBy ?? [];
          written.set(Name, { unit: Unit, writtenBy: [...before, writtenBy] });
        }
      },
    });
  const counted = new Registry();
  prometheusEvictionMetrics(counted);
  const evict = emfOf('evict');
  for (const { name } of await counted.getMetricsAsJSON()) evict.put(name, 1, clusterName('c1'));
  evict.flush();
  const relay = relayMetrics(new Registry(), emfOf('relay'));
  const { CLOCK_SKEW, GUARD_TRIPS, NOBODY_EVICTS, STUCK_PODS, TAKEOVERS_WITHHELD } = names;
  for (const name of [CLOCK_SKEW, GUARD_TRIPS, NOBODY_EVICTS, STUCK_PODS, TAKEOVERS_WITHHELD])
    relay.put(name, 1);
  relay.overBudget(1);
  relay.refused(DELTA_QUEUES[0]);
  relay.unsent(DELTA_QUEUES[0], 1);
  const heartbeat = createHeartbeat({
    registry: { list: async () => ({ clusters: [], strays: [] }) },
    leases: { readAll: async () => [] },
    emf: emfOf('heartbeat'),
    stopwatch: () => 0,
    log: logTo(() => undefined),
  });
  await heartbeat({}, {} as Context);
  return written;
}
