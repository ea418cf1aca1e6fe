import type { ClusterView, Subject } from '#shared/engine/watch/cluster-view.ts';
import { DELTA_QUEUES, type DeltaQueue, type Outbox } from '#shared/engine/watch/outbox.ts';
import { PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, nodeKey, parseNodeKey } from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';

export interface DecisionsDeps {
  /** Takes deltas of one node into the store, all or, when it rejects, none. */
  readonly decide: (deltas: readonly [Delta, ...Delta[]]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<RelayMetrics, 'sent' | 'unsent' | 'pending'>;
}

/** Nodes that are decided at a time: deciding waits for the store only. */
const AT_ONCE = 8;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };
/** A cluster's part of what is to be decided. */
interface Spoken {
  readonly pending: PendingDeltas;
  readonly canSend: () => boolean;
}

/**
 * Has decided, in this process, what a relay notes of its clusters, node by node. It holds names: what is decided, and its version, is made of the
 * cluster's view right before, so that nothing that waits gets old.
 */
export class Decisions implements Outbox {
  readonly #deps: DecisionsDeps;
  readonly #clusters = new Map<ClusterName, Spoken>();
  readonly #queue: WorkQueue<string>;
  readonly #workers: Workers<string>;

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
    const { clock } = deps;
    const clusterOf = (key: string) => parseNodeKey(key).cluster;
    this.#queue = new WorkQueue({ clock, backoff: BACKOFF, clusterOf });
    this.#workers = new Workers({
      queue: this.#queue,
      atOnce: AT_ONCE,
      work: (key) => this.#decide(key),
      failed: (key, reason, failures) =>
        deps.log.warn('message.retrying', { ...parseNodeKey(key), receiveCount: failures, error: reason }),
      mayWork: (cluster) => this.#clusters.get(cluster)?.canSend() ?? true,
    });
  }

  /** How many nodes wait, or are decided. */
  get size(): number {
    return this.#queue.size;
  }

  open(cluster: ClusterName, view: ClusterView, canSend: () => boolean): void {
    this.#clusters.set(cluster, { pending: new PendingDeltas(view), canSend });
  }

  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const spoken = this.#clusters.get(cluster);
    if (!spoken) return;
    for (const subject of subjects) {
      spoken.pending.mark(subject, wake);
      this.#queue.add(nodeKey({ cluster, node: subject.node }));
    }
  }

  send(): void {
    this.#workers.offer();
  }

  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  async drained(): Promise<void> {
    const isBusy = ([cluster, { canSend }]: [ClusterName, Spoken]) =>
      this.#queue.sizeOf(cluster) > 0 && canSend();
    while (this.#clusters.entries().some(isBusy)) await this.#workers.next;
  }

  stop(): void {
    this.#clusters.clear();
    this.#queue.stop();
  }

  /** Begins nothing more; resolves when what is being decided is. */
  ended(): Promise<void> {
    return this.#workers.stop();
  }

  /** A node with all its pods is decided before single ones. */
  async #decide(key: string): Promise<undefined> {
    const { clock, metrics } = this.#deps;
    const { cluster, node } = parseNodeKey(key);
    const pending = this.#clusters.get(cluster)?.pending;
    for (const queue of DELTA_QUEUES) {
      const [first, ...rest] = pending?.take(queue, node, clock.now()) ?? [];
      const waiting = this.#clusters.values().reduce((sum, each) => sum + each.pending.count(queue), 0);
      metrics.pending.set({ queue }, waiting);
      if (pending && first) await this.#decided(queue, [first, ...rest], pending);
    }
  }

  async #decided(
    queue: DeltaQueue,
    deltas: readonly [Delta, ...Delta[]],
    pending: PendingDeltas,
  ): Promise<void> {
    const { metrics, decide } = this.#deps;
    try {
      await decide(deltas);
    } catch (error) {
      metrics.unsent(queue, deltas.length);
      // It is decided with what was noted since, as it is by then.
      for (const delta of deltas) pending.mark(subjectOf(delta), delta.kind === 'node' && delta.wake);
      throw error;
    }
    metrics.sent.inc({ queue }, deltas.length);
  }
}
