import type { Context, DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import type { QueueKey } from '#shared/aws/queue-set.ts';
import type { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import type { GuardController } from '#shared/engine/watch/guard-controller.ts';
import type { RulesListener } from '#shared/engine/watch/rules-watch.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { leaseEpochs } from '#shared/state/lease.ts';
import type { RulesReader, RulesStore } from '#shared/state/rules-store.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Store } from '#shared/state/store.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import type { Handler } from './simulated-function.ts';

/** A handler of the table's stream. */
export type ExpiryHandler = (
  event: DynamoDBStreamEvent,
  context: Context,
) => Promise<DynamoDBBatchResponse | undefined>;

type LeaseEpoch = ReturnType<typeof leaseEpochs>;

/** Whoever stands behind a port. */
export type User = QueueKey | 'expiry';

/** The guard of a cluster, as its relay uses it. */
export type Guard = Pick<GuardController, 'mayTell' | 'ruled' | 'counted' | 'look'>;

/** Where the guard of a cluster is written. */
export type GuardBook = Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;

/** Where a defect may be planted: between the service's parts and the ports that they stand on. */
export interface Hooks {
  store(store: Store, user: User, scene: Scene): Store;
  api(api: KubernetesApi, scene: Scene): KubernetesApi;
  /** The epoch of a cluster's lease, as the functions know it. */
  leaseEpoch(read: LeaseEpoch): LeaseEpoch;
  /** What governs a cluster, as a function knows it. */
  rules(read: RulesReader, user: User, scene: Scene): RulesReader;
  /** A relay hears that what governs a cluster changed. */
  relayRuled(hear: RulesListener): RulesListener;
  /** What a function sends to `evictions-due`. */
  dueQueue(queue: QueueSender, user: User, scene: Scene): QueueSender;
  /** The guard that a relay keeps, and where that is written. */
  relayGuard(guard: Guard): Guard;
  guardBook(book: GuardBook, scene: Scene): GuardBook;
  /** What a relay knows, and how it reaches a cluster's API server. */
  relayView(view: ClusterView): ClusterView;
  relayApi(api: KubernetesApi, scene: Scene): KubernetesApi;
  /** What a relay sends. */
  relayQueue(queue: QueueSender, cluster: LiveCluster): QueueSender;
  handler(handler: Handler, queue: QueueKey, scene: Scene): Handler;
  expiry(handler: ExpiryHandler, scene: Scene): ExpiryHandler;
}

/** A service without a planted defect. */
export const SOUND: Hooks = {
  store: (store) => store,
  api: (api) => api,
  leaseEpoch: (read) => read,
  rules: (read) => read,
  relayRuled: (hear) => hear,
  relayGuard: (guard) => guard,
  guardBook: (book) => book,
  dueQueue: (queue) => queue,
  relayView: (view) => view,
  relayApi: (api) => api,
  relayQueue: (queue) => queue,
  handler: (handler) => handler,
  expiry: (handler) => handler,
};
