import { announce } from '#shared/engine/evict/events.ts';
import type { LaterEvents } from '#shared/engine/evict/later-events.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import type { News } from '#shared/engine/news.ts';
import type { ClusterView, Subject } from '#shared/engine/watch/cluster-view.ts';
import { PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
import { DELTA_QUEUES, type DeltaQueue, type Outbox } from '#shared/engine/watch/ports.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, type NodeRef, nodeKey, parseNodeKey } from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';

export interface DecisionsDeps {
  /** Applies deltas of one node to the store. If it rejects, none of them is applied. */
  readonly decide: (deltas: readonly [Delta, ...Delta[]]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<RelayMetrics, 'sent' | 'unsent' | 'pending'>;
}

/** Nodes that are decided at a time. Deciding waits only for the store. */
const AT_ONCE = 8;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };
/** The undecided deltas of a cluster. */
interface ClusterDeltas {
  readonly pending: PendingDeltas;
  readonly canSend: () => boolean;
}

/**
 * Decides in this process the changes that a relay marks, node by node. It holds only names. The content and
 * version of a delta are read from the cluster's view immediately before the decision, so queued work never
 * becomes outdated.
 */
export class Decisions implements Outbox {
  readonly #deps: DecisionsDeps;
  readonly #clusters = new Map<ClusterName, ClusterDeltas>();
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

  /** Number of nodes that are queued or being decided. */
  get size(): number {
    return this.#queue.size;
  }

  open(cluster: ClusterName, view: ClusterView, canSend: () => boolean): void {
    this.#clusters.set(cluster, { pending: new PendingDeltas(view), canSend });
  }

  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const deltas = this.#clusters.get(cluster);
    if (!deltas) return;
    for (const subject of subjects) {
      deltas.pending.mark(subject, wake);
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
    const isBusy = ([cluster, { canSend }]: [ClusterName, ClusterDeltas]) =>
      this.#queue.sizeOf(cluster) > 0 && canSend();
    while (this.#clusters.entries().some(isBusy)) await this.#workers.next;
  }

  stop(): void {
    this.#queue.stop();
  }

  /** Starts no more decisions, and resolves when the current ones end. */
  ended(): Promise<void> {
    return this.#workers.stop();
  }

  /** Decides the node delta, with all pods of the node, before deltas of single pods. */
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
      // Decide it again later, together with newer changes, from the state at that time.
      for (const delta of deltas) pending.mark(subjectOf(delta), delta.kind === 'node' && delta.wake);
      throw error;
    }
    metrics.sent.inc({ queue }, deltas.length);
  }
}

/** Announces a decision. Events are optional, so a failed announcement doesn't delay the decision. */
export function announceLater(ref: NodeRef, news: News, deps: EvictDeps, later: LaterEvents): Promise<void> {
  const events = news.canceled.reduce((sum, { pods }) => sum + pods.length, news.countdowns.length);
  return later.post(ref.cluster, events, () =>
    announce(ref, news, deps).catch((reason: unknown) =>
      deps.log.warn('event.enqueue-failed', { ...ref, error: reason }),
    ),
  );
}
