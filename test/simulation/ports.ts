import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { OutgoingMessage, QueueSender, VisibilityControl } from '#shared/queues/sender.ts';
import type { Store } from '#shared/store/store.ts';
import type { Timers } from '#shared/timers/timers.ts';
import type { Process, Surroundings } from './process.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

/** A store as one process reaches it. */
export function storePort(process: Process, store: Store, { weather }: Surroundings): Store {
  return {
    load: (...args) => process.request('store', () => store.load(...args)),
    commit: (...args) =>
      process.request('store', async () => (weather.conflict() ? 'conflict' : store.commit(...args))),
    end: (...args) => process.request('store', () => store.end(...args)),
    async *taintedNodes(cluster) {
      yield* await process.request('store', () => Array.fromAsync(store.taintedNodes(cluster)));
    },
  };
}

/** A queue as one process reaches it. Now and then it does not take all it is sent. */
export function queuePort(
  process: Process,
  queue: SimulatedQueue,
  { random, weather }: Surroundings,
): QueueSender {
  return {
    send: (messages) =>
      process.request('queues', async () => {
        if (!weather.conflict()) return queue.accept(messages);
        const failed = random.between(0, messages.length - 1);
        const isRefused = ({ groupId }: OutgoingMessage, index: number) =>
          index === failed ||
          (index > failed && groupId !== undefined && groupId === messages[failed]?.groupId);
        queue.accept(messages.filter((message, index) => !isRefused(message, index)));
        return messages.flatMap((message, index) =>
          isRefused(message, index) ? [{ index, reason: 'throttled', permanent: false }] : [],
        );
      }),
  };
}

/** A queue's dead-letter queue as one process reaches it. */
export const deadLetterPort = (process: Process, { deadLetters }: SimulatedQueue): QueueSender => ({
  send: (messages) =>
    process.request('queues', async () => {
      deadLetters.push(...messages);
      return [];
    }),
});

/** When the messages of a queue are seen again; that is free, because it cannot fail in the eyes of a handler. */
export const visibilityPort = (queue: SimulatedQueue): VisibilityControl => ({
  retryIn: async (messages) => {
    for (const { receiptHandle, seconds } of messages) queue.retryIn(receiptHandle, seconds);
  },
});

/** Timers as one process reaches them. */
export const timersPort = (process: Process, timers: Timers): Timers => ({
  arm: (...args) => process.request('timers', () => timers.arm(...args)),
});

/** An API server as one process reaches it, for what the handlers ask of it. */
export function apiPort(process: Process, api: KubernetesApi): KubernetesApi {
  return {
    get nodes() {
      return api.nodes;
    },
    get pods() {
      return api.pods;
    },
    get skewMs() {
      return api.skewMs;
    },
    get breakerOpen() {
      return api.breakerOpen;
    },
    getNode: (name) => process.request('api', () => api.getNode(name)),
    getPod: (pod) => process.request('api', () => api.getPod(pod)),
    podsOnNode: (...args) => process.request('api', () => api.podsOnNode(...args)),
    markDisrupted: (...args) => process.request('api', () => api.markDisrupted(...args)),
    deletePod: (...args) => process.request('api', () => api.deletePod(...args)),
    createEvent: (...args) => process.request('api', () => api.createEvent(...args)),
    close: () => undefined,
  };
}
