import { createHandler as createDeltaHandler, DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { createHandler as createExpiryHandler } from '#functions/expiry/handler.ts';
import { EVICT_BATCH_SIZE } from '#shared/aws/due-consumption.ts';
import { settingAside } from '#shared/aws/due-message.ts';
import type { QueueKey } from '#shared/aws/queue-set.ts';
import { NotedProofs } from '#shared/engine/evict/proofs.ts';
import type { Timers } from '#shared/engine/timers.ts';
import { leaseEpochs } from '#shared/state/lease.ts';
import { NO_METRICS } from '#test/world/no-metrics.ts';
import type { User } from './fault.ts';
import { awsTimers, deadLetterPort, queuePort, rulesPort, visibilityPort } from './ports.ts';
import type { Process } from './process.ts';
import type { Scene } from './scene.ts';
import { SimulatedClusters } from './simulated-api.ts';
import { type FunctionSettings, runFunction } from './simulated-function.ts';
import { SimulatedStream } from './simulated-stream.ts';

const INSTANCES = { deltas: 2, evict: 4 };

/** Returns the ports of a function in a process. `timers`: absent = those on AWS. */
export function portsOf(process: Process, user: User, scene: Scene, timers?: Timers) {
  const { fault, storage, log, queues, scheduler } = scene;
  const { clock } = process;
  const ports = storage.ports(process);
  const dueQueue = fault.dueQueue(queuePort(process, queues.evictionsDue, scene), user, scene);
  return {
    store: fault.store(scene.judge.watchStore(ports.store, user), user, scene),
    clusters: new SimulatedClusters(process, ports.registry, scene),
    timers: timers ?? awsTimers(process, dueQueue, scheduler),
    dueQueue,
    permits: scene.judge.watchPermits(fault.permits(ports.permits)),
    trace: ports.proofs,
    proofs: new NotedProofs({ notes: ports.proofs, clock, log }),
    leaseEpoch: fault.leaseEpoch(leaseEpochs(ports.leases, clock)),
    rules: fault.rules(rulesPort(process, scene), user, scene),
    metrics: NO_METRICS,
    clock,
    log,
  };
}

/** Returns the handlers that queues feed. */
function queueFunctions(scene: Scene): readonly FunctionSettings[] {
  const portsAt = (process: Process, queue: QueueKey) => ({
    ...portsOf(process, queue, scene),
    deadLetters: deadLetterPort(process, scene.queues[queue].deadLetters),
    visibility: visibilityPort(scene.queues[queue]),
  });
  const deltas = (queue: QueueKey) => ({
    queue,
    batchSize: DELTA_BATCH_SIZE,
    instances: INSTANCES.deltas,
    start: (process: Process) =>
      scene.fault.handler(createDeltaHandler(portsAt(process, queue)), queue, scene),
  });
  return [
    deltas('nodeDeltas'),
    deltas('podDeltas'),
    {
      queue: 'evictionsDue',
      batchSize: EVICT_BATCH_SIZE,
      instances: INSTANCES.evict,
      start: (process) => {
        const ports = portsAt(process, 'evictionsDue');
        const handler = createEvictHandler({ ...ports, setAside: settingAside(ports.deadLetters) });
        return scene.fault.handler(handler, 'evictionsDue', scene);
      },
    },
  ];
}

/** Runs all functions as on AWS. */
export function runFunctions(scene: Scene): void {
  for (const settings of queueFunctions(scene)) runFunction(scene, settings);
  new SimulatedStream(scene, (process, refused) => {
    const deadLetters = deadLetterPort(process, refused);
    const handler = createExpiryHandler({ ...portsOf(process, 'expiry', scene), deadLetters });
    return scene.fault.expiry(handler, scene);
  });
}
