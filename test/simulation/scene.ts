import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { QUEUES, type QueueKey, type QueueSpec, visibilitySeconds } from '#shared/queues/queue-set.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { LiveCluster } from './live-cluster.ts';
import type { Surroundings } from './process.ts';
import { SimulatedQueue } from './simulated-queue.ts';
import { SimulatedTimers } from './simulated-timers.ts';

/** What the relays and functions of one history share. */
export interface Scene extends Surroundings {
  readonly name: ClusterName;
  readonly cluster: LiveCluster;
  readonly store: SqliteStore;
  readonly queues: Readonly<Record<QueueKey, SimulatedQueue>>;
  readonly timers: SimulatedTimers;
  readonly log: Log;
}

export const MATCHING = { comparisonOperators: false };

export function setScene(surroundings: Surroundings, log: Log): Scene {
  const queue = (spec: QueueSpec) =>
    new SimulatedQueue(surroundings, {
      visibilitySeconds: visibilitySeconds(spec),
      maxReceives: spec.maxReceiveCount,
    });
  const queues = {
    nodeDeltas: queue(QUEUES.nodeDeltas),
    podDeltas: queue(QUEUES.podDeltas),
    evictionsDue: queue(QUEUES.evictionsDue),
  };
  return {
    ...surroundings,
    name: clusterName('c1'),
    cluster: new LiveCluster(surroundings.clock),
    store: new SqliteStore({ path: ':memory:' }),
    queues,
    timers: new SimulatedTimers(surroundings, queues.evictionsDue),
    log,
  };
}
