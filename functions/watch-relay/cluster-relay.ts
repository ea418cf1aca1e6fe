import type { Lease, Leases } from '#shared/clusters/lease.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi, Resource } from '#shared/kubernetes/api.ts';
import type { Store, TaintedNode } from '#shared/store/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { ClusterView, type Subject } from './cluster-view.ts';
import { type FollowSink, follow } from './follow.ts';
import type { Outbox } from './outbox.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** A lease not renewed for this long is free. With the longest wait below, a dead relay is stood in for within 15 s. */
export const LEASE_TTL_MS = 10_000;
/** Three tries to renew fit into a lease's time. */
export const LEASE_RENEW_MS = 3_000;
/** How long a relay without the lease waits before it asks again, jittered by half. */
const LEASE_RETRY_MS = 2_000;
/** How much longer it waits for each lease it holds, and at most: whoever speaks for few clusters is faster. */
const HANDICAP_MS = 50;
export const MAX_LEASE_WAIT_MS = 4_000;
/** How long a relay that stops waits for the queues; what they do not take by then the next relay sends anew. */
const DRAIN_MS = 5_000;

export interface ClusterRelayDeps {
  readonly leases: Leases;
  readonly store: Store;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
  /** Names this relay in leases. */
  readonly holder: string;
  /** How many leases this relay holds. */
  held(): number;
}

export type ClusterRelayState = 'standby' | 'syncing' | 'synced';

/** Follows one cluster for as long as it holds its lease; waits for the lease when another relay has it. */
export class ClusterRelay {
  readonly #cluster: ClusterName;
  readonly #api: KubernetesApi;
  readonly #deps: ClusterRelayDeps;
  readonly #stopping = new AbortController();
  readonly #labels: { readonly cluster: ClusterName };
  #state: ClusterRelayState = 'standby';
  /** As far as it is known to be ours. */
  #lease: Lease | undefined;
  #running: Promise<void> | undefined;

  constructor(cluster: ClusterName, api: KubernetesApi, deps: ClusterRelayDeps) {
    this.#cluster = cluster;
    this.#api = api;
    this.#deps = deps;
    this.#labels = { cluster };
  }

  get state(): ClusterRelayState {
    return this.#state;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends following and gives the lease up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const lease = await this.#acquire();
      if (lease) await this.#hold(lease);
      else await pause(leaseWaitMs(this.#deps.held()), signal);
    }
  }

  async #acquire(): Promise<Lease | undefined> {
    const { leases, holder, clock, log } = this.#deps;
    try {
      return await leases.acquire(this.#cluster, holder, clock.now(), LEASE_TTL_MS);
    } catch (error) {
      log.error('relay.lease-failed', { ...this.#labels, reason: error });
      return undefined;
    }
  }

  async #hold(lease: Lease): Promise<void> {
    const { leases, outbox, log, metrics } = this.#deps;
    const lost = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, lost.signal]);
    const view = new ClusterView(this.#cluster, lease.epoch);
    this.#lease = lease;
    outbox.open(this.#cluster, view, () => this.#maySpeak());
    log.info('relay.lease-taken', { ...this.#labels, epoch: lease.epoch });
    metrics.leaseHeld.set(this.#labels, 1);
    this.#state = 'syncing';
    try {
      await Promise.all([this.#keepLease(lease, lost), this.#followCluster(view, signal)]);
    } finally {
      this.#state = 'standby';
      metrics.leaseHeld.set(this.#labels, 0);
      metrics.synced.set(this.#labels, 0);
    }
    if (!lost.signal.aborted) await this.#drain();
    this.#lease = undefined;
    outbox.dropCluster(this.#cluster);
    if (lost.signal.aborted) {
      log.warn('relay.lease-lost', { ...this.#labels, epoch: lease.epoch });
    } else {
      await leases
        .release(lease)
        .catch((error: unknown) => log.warn('relay.lease-failed', { ...this.#labels, reason: error }));
    }
  }

  /** Whether the lease is ours by our own clock: a process that slept must not speak before it has renewed it. */
  #maySpeak(): boolean {
    return this.#lease !== undefined && this.#deps.clock.now() < this.#lease.expiresAt;
  }

  async #drain(): Promise<void> {
    const drained = new AbortController();
    const draining = this.#deps.outbox.drained().then(() => drained.abort());
    await Promise.race([draining, pause(DRAIN_MS, drained.signal)]);
  }

  /** Renews until stopped; aborts `lost` when the lease is another's, or can no longer be known to be ours. */
  async #keepLease(taken: Lease, lost: AbortController): Promise<void> {
    const { leases, clock, log, outbox } = this.#deps;
    const signal = this.#stopping.signal;
    let lease = taken;
    for (;;) {
      await pause(LEASE_RENEW_MS, signal);
      if (signal.aborted) return;
      try {
        const renewed = await leases.renew(lease, clock.now(), LEASE_TTL_MS);
        if (!renewed) break;
        lease = renewed;
        this.#lease = lease;
        // What waited because the lease had run out.
        outbox.send();
      } catch (error) {
        log.error('relay.lease-failed', { ...this.#labels, reason: error });
        if (clock.now() >= lease.expiresAt) break;
      }
    }
    this.#lease = undefined;
    lost.abort();
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
        await pause(LEASE_RETRY_MS, signal);
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

/** Milliseconds until the next try for a lease that another relay has. */
export function leaseWaitMs(held: number, random = Math.random()): number {
  return Math.min(LEASE_RETRY_MS * (0.5 + random / 2) + HANDICAP_MS * held, MAX_LEASE_WAIT_MS);
}
