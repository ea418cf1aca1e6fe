import type { Context, DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import type { QueueKey } from '#shared/aws/queue-set.ts';
import type { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import type { GuardController } from '#shared/engine/watch/guard-controller.ts';
import type { RulesListener } from '#shared/engine/watch/rules-watch.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { leaseEpochs } from '#shared/state/lease.ts';
import type { Permits } from '#shared/state/permits.ts';
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

/** The component that uses a port. */
export type User = QueueKey | 'expiry';

/** The guard of a cluster, as its relay uses it. */
export type Guard = Pick<GuardController, 'maySend' | 'ruled' | 'counted' | 'review'>;

/** The store of a cluster's guard state. */
export type GuardBook = Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;

/** The places where a defect may be planted: between the service's parts and their ports. */
export interface Hooks {
  store(store: Store, user: User, scene: Scene): Store;
  api(api: KubernetesApi, scene: Scene): KubernetesApi;
  /** The permits, as a process takes them. */
  permits(permits: Permits): Permits;
  /** The epoch of a cluster's lease, as the functions read it. */
  leaseEpoch(read: LeaseEpoch): LeaseEpoch;
  /** The rules of a cluster, as a function reads them. */
  rules(read: RulesReader, user: User, scene: Scene): RulesReader;
  /** The listener by which a relay receives changed rules of a cluster. */
  relayRuled(listener: RulesListener): RulesListener;
  /** The messages that a function sends to `evictions-due`. */
  dueQueue(queue: QueueSender, user: User, scene: Scene): QueueSender;
  /** The guard of a relay, and the store of its state. */
  relayGuard(guard: Guard): Guard;
  guardBook(book: GuardBook, scene: Scene): GuardBook;
  /** A relay's view, and its access to a cluster's API server. */
  relayView(view: ClusterView): ClusterView;
  relayApi(api: KubernetesApi, scene: Scene): KubernetesApi;
  /** The messages that a relay sends. */
  relayQueue(queue: QueueSender, cluster: LiveCluster): QueueSender;
  handler(handler: Handler, queue: QueueKey, scene: Scene): Handler;
  expiry(handler: ExpiryHandler, scene: Scene): ExpiryHandler;
}

/** A service without a planted defect. */
export const SOUND: Hooks = {
  store: (store) => store,
  api: (api) => api,
  permits: (permits) => permits,
  leaseEpoch: (read) => read,
  rules: (read) => read,
  relayRuled: (listener) => listener,
  relayGuard: (guard) => guard,
  guardBook: (book) => book,
  dueQueue: (queue) => queue,
  relayView: (view) => view,
  relayApi: (api) => api,
  relayQueue: (queue) => queue,
  handler: (handler) => handler,
  expiry: (handler) => handler,
};
