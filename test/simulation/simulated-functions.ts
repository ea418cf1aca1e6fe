import { createHandler as createDeltaHandler, DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler, EVICT_BATCH_SIZE } from '#functions/evict/handler.ts';
import type { QueueKey } from '#shared/queues/queue-set.ts';
import { apiPort, deadLetterPort, queuePort, storePort, timersPort, visibilityPort } from './ports.ts';
import type { Process } from './process.ts';
import { MATCHING, type Scene } from './scene.ts';
import { runFunction } from './simulated-function.ts';

const NO_METRICS = {
  podDeleted: () => undefined,
  requestRefused: () => undefined,
  retried: () => undefined,
  gaveUp: () => undefined,
  clockSkewed: () => undefined,
};

/** Runs the real handlers, each on its queue. */
export function runFunctions(scene: Scene): void {
  const { clock, cluster, log, queues, store, timers } = scene;
  const ports = (process: Process, queue: QueueKey) => ({
    store: storePort(process, store, scene),
    timers: timersPort(process, timers),
    dueQueue: queuePort(process, queues.evictionsDue, scene),
    deadLetters: deadLetterPort(process, queues[queue]),
    visibility: visibilityPort(queues[queue]),
    leaseEpoch: async () => undefined,
    matching: MATCHING,
    clock,
    log,
  });
  runFunction(scene, {
    queue: 'nodeDeltas',
    batchSize: DELTA_BATCH_SIZE,
    start: (process) => createDeltaHandler(ports(process, 'nodeDeltas')),
  });
  runFunction(scene, {
    queue: 'podDeltas',
    batchSize: DELTA_BATCH_SIZE,
    start: (process) => createDeltaHandler(ports(process, 'podDeltas')),
  });
  runFunction(scene, {
    queue: 'evictionsDue',
    batchSize: EVICT_BATCH_SIZE,
    start: (process) => {
      const clusters = { api: async () => apiPort(process, cluster) };
      return createEvictHandler({ ...ports(process, 'evictionsDue'), clusters, metrics: NO_METRICS });
    },
  });
}
