import type { Lease } from '#shared/clusters/lease.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { KubernetesApi, Resource } from '#shared/kubernetes/api.ts';
import type { Store, TaintedNode } from '#shared/store/store.ts';
import { pause } from '#shared/time/pause.ts';
import { ClusterView, type Subject } from './cluster-view.ts';
import { type FollowSink, follow } from './follow.ts';
import { type LeaseEnd, LeaseKeeper, type LeaseKeeperDeps } from './lease-keeper.ts';
import type { Outbox } from './outbox.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** How long a relay waits after the store failed in a resync. */
const RESYNC_RETRY_MS = 2_000;
/** How long a relay that stops waits for the queues; what they do not take by then the next relay sends anew. */
const DRAIN_MS = 5_000;

export interface ClusterRelayDeps extends LeaseKeeperDeps {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly metrics: RelayMetrics;
}

export type ClusterRelayState = 'standby' | 'syncing' | 'synced';

/** Follows one cluster for as long as it holds its lease; waits for the lease when another relay has it. */
export class ClusterRelay {
  readonly #cluster: ClusterName;
  readonly #api: KubernetesApi;
  readonly #deps: ClusterRelayDeps;
  readonly #labels: { readonly cluster: ClusterName };
  readonly #keeper: LeaseKeeper;
  /** When nodes and pods were last heard of. */
  readonly #heardAt = new Map<string, EpochMs>();
  #view: ClusterView | undefined;
  #state: ClusterRelayState = 'standby';

  constructor(cluster: ClusterName, api: KubernetesApi, deps: ClusterRelayDeps) {
    this.#cluster = cluster;
    this.#api = api;
    this.#deps = deps;
    this.#labels = { cluster };
    const tenant = {
      held: (lease: Lease, signal: AbortSignal) => this.#hold(lease, signal),
      regained: () => deps.outbox.send(),
      heardAt: () => (this.#heardAt.size === 2 ? Math.min(...this.#heardAt.values()) : undefined),
      nodes: () => (this.#view?.synced ? this.#view.counts.nodes : undefined),
    };
    this.#keeper = new LeaseKeeper(cluster, tenant, deps);
  }

  get state(): ClusterRelayState {
    return this.#state;
  }

  start(): void {
    this.#keeper.start();
  }

  /** Ends following and gives the lease up. */
  async stop(): Promise<void> {
    await this.#keeper.stop();
  }

  async #hold(lease: Lease, signal: AbortSignal): Promise<void> {
    const { outbox, metrics } = this.#deps;
    const view = new ClusterView(this.#cluster, lease.epoch);
    this.#view = view;
    outbox.open(this.#cluster, view, () => this.#keeper.maySpeak());
    metrics.leaseHeld.set(this.#labels, 1);
    this.#state = 'syncing';
    try {
      await this.#followCluster(view, signal);
    } finally {
      this.#view = undefined;
      this.#state = 'standby';
      metrics.leaseHeld.set(this.#labels, 0);
      metrics.synced.set(this.#labels, 0);
    }
    if (signal.reason !== ('lost' satisfies LeaseEnd)) await this.#drain();
    outbox.dropCluster(this.#cluster);
  }

  async #drain(): Promise<void> {
    const drained = new AbortController();
    const draining = this.#deps.outbox.drained().then(() => drained.abort());
    await Promise.race([draining, pause(DRAIN_MS, drained.signal)]);
  }

  async #followCluster(view: ClusterView, signal: AbortSignal): Promise<void> {
    const { clock, log, metrics, outbox } = this.#deps;
    const resyncDue = new ResyncRequest();
    const listen = <T extends { readonly resourceVersion: string }>(
      name: 'nodes' | 'pods',
      resource: Resource<T>,
      heard: Heard<T>,
    ) => {
      const labels = { ...this.#labels, resource: name };
      const sink: FollowSink<T> = {
        heard: () => this.#heardAt.set(name, clock.now()),
        replace: (objects) => {
          metrics.relists.inc(labels);
          outbox.mark(this.#cluster, heard.replace(objects));
          if (view.synced) resyncDue.now();
        },
        change: ({ kind, object }) => outbox.mark(this.#cluster, heard[kind](object)),
        failed: (error) => {
          metrics.watchFailures.inc(labels);
          log.warn('relay.watch-failed', { ...labels, reason: error });
        },
      };
      return follow(resource, sink, { signal, log, name });
    };
    await Promise.all([
      listen('nodes', this.#api.nodes, {
        replace: (nodes) => view.replaceNodes(nodes, clock.now()),
        upsert: (node) => view.upsertNode(node, clock.now()),
        delete: ({ name }) => view.deleteNode(name, clock.now()),
      }),
      listen('pods', this.#api.pods, {
        replace: (pods) => view.replacePods(pods, clock.now()),
        upsert: (pod) => view.upsertPod(pod, clock.now()),
        delete: (pod) => view.deletePod(pod),
      }),
      this.#resync(view, resyncDue, signal),
    ]);
  }

  async #resync(view: ClusterView, due: ResyncRequest, signal: AbortSignal): Promise<void> {
    const { clock, log, metrics, outbox } = this.#deps;
    for (;;) {
      const cause = await due.next(RESYNC_MS, signal);
      if (cause === 'stopped') return;
      if (!view.synced) continue;
      try {
        const stored = await this.#storedTaintedNodes();
        outbox.mark(this.#cluster, view.resync(stored, clock.now()), cause === 'gap');
      } catch (error) {
        log.error('relay.resync-failed', { ...this.#labels, reason: error });
        await pause(RESYNC_RETRY_MS, signal);
        due.now();
        continue;
      }
      if (this.#state !== 'synced') {
        this.#state = 'synced';
        metrics.synced.set(this.#labels, 1);
        log.info('relay.synced', { ...this.#labels, ...view.counts });
      }
      for (const [kind, count] of Object.entries(view.counts))
        metrics.objects.set({ ...this.#labels, kind }, count);
    }
  }

  async #storedTaintedNodes(): Promise<readonly TaintedNode[]> {
    const stored: TaintedNode[] = [];
    for await (const node of this.#deps.store.taintedNodes(this.#cluster)) stored.push(node);
    return stored;
  }
}

/** Of what there is something to tell, by what is heard of one kind of object. */
interface Heard<T> {
  replace(objects: readonly T[]): readonly Subject[];
  upsert(object: T): readonly Subject[];
  delete(object: T): readonly Subject[];
}

/** Asks for a resync now, after a gap; several requests before it runs are one. */
class ResyncRequest {
  #requested = false;
  #wake: () => void = () => undefined;

  now(): void {
    this.#requested = true;
    this.#wake();
  }

  /** Resolves when a resync is due: asked for, or after `intervalMs`. */
  async next(intervalMs: number, signal: AbortSignal): Promise<'gap' | 'interval' | 'stopped'> {
    if (!this.#requested) {
      const asked = new AbortController();
      this.#wake = () => asked.abort();
      await pause(intervalMs, AbortSignal.any([signal, asked.signal]));
    }
    const cause = this.#requested ? 'gap' : 'interval';
    this.#requested = false;
    return signal.aborted ? 'stopped' : cause;
  }
}
