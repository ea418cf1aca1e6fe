import type { QueueKey, QueueSpec } from '#shared/aws/queue-set.ts';
import { QUEUES, visibilitySeconds } from '#shared/aws/queue-set.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Hooks } from './fault.ts';
import type { Judge } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { Plans } from './plans.ts';
import type { Surroundings } from './process.ts';
import { SimulatedQueue } from './simulated-queue.ts';
import type { SimulatedRulesStore } from './simulated-rules-store.ts';
import type { SimulatedScheduler } from './simulated-scheduler.ts';
import type { SimulatedStorage } from './simulated-storage.ts';
import type { Story } from './story.ts';

export type Queues = Readonly<Record<QueueKey, SimulatedQueue>>;

/** The observer of relays and functions. */
export type Watcher = Pick<Judge, 'watchStore' | 'watchPermits' | 'leaseTaken' | 'sent' | 'podsRead'>;

/** The objects that the relays and functions of one history share. */
export interface Scene extends Surroundings {
  readonly clusters: readonly LiveCluster[];
  readonly storage: SimulatedStorage;
  readonly queues: Queues;
  readonly scheduler: SimulatedScheduler;
  /** Absent: no cluster has an owner, and all clusters are enforced. */
  readonly rulesStore: SimulatedRulesStore | undefined;
  readonly plans: Plans;
  readonly log: Log;
  readonly story: Story;
  readonly judge: Watcher;
  readonly fault: Hooks;
}

export const MATCHING = { comparisonOperators: false };

export function openQueues(surroundings: Surroundings): Queues {
  const queue = (spec: QueueSpec) =>
    new SimulatedQueue(surroundings, {
      fifo: spec.fifo,
      visibilitySeconds: visibilitySeconds(spec),
      maxReceives: spec.maxReceiveCount,
    });
  return {
    nodeDeltas: queue(QUEUES.nodeDeltas),
    podDeltas: queue(QUEUES.podDeltas),
    evictionsDue: queue(QUEUES.evictionsDue),
  };
}
