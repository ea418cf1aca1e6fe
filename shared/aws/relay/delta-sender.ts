import type { ClusterView, Subject } from '#shared/engine/watch/cluster-view.ts';
import { PendingDeltas } from '#shared/engine/watch/pending-deltas.ts';
import { DELTA_QUEUES, type DeltaQueue, type Outbox } from '#shared/engine/watch/ports.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type ClusterOutbox, DeltaBatcher } from './delta-batcher.ts';

export interface DeltaSenderDeps {
  readonly nodeDeltas: QueueSender;
  readonly podDeltas: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/**
 * Holds names for two queues, not messages: a delta's content and version are read from the cluster's view right before
 * the call, if the cluster may send then.
 */
export class DeltaSender implements Outbox {
  readonly #clusters = new Map<ClusterName, ClusterOutbox>();
  readonly #batchers: Readonly<Record<DeltaQueue, DeltaBatcher>>;
  readonly #stopping = new AbortController();

  constructor({ nodeDeltas, podDeltas, ...deps }: DeltaSenderDeps) {
    const common = {
      ...deps,
      clusters: this.#clusters,
      signal: this.#stopping.signal,
      mark: this.#mark.bind(this),
    };
    this.#batchers = {
      'node-deltas': new DeltaBatcher({ ...common, name: 'node-deltas', queue: nodeDeltas }),
      'pod-deltas': new DeltaBatcher({ ...common, name: 'pod-deltas', queue: podDeltas }),
    };
  }

  open(
    name: ClusterName,
    view: ClusterView,
    canSend: () => boolean,
    onSent: (queue: DeltaQueue, error?: unknown) => void = () => undefined,
  ): void {
    this.#clusters.set(name, { name, pending: new PendingDeltas(view), canSend, onSent });
  }

  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const outbox = this.#clusters.get(cluster);
    if (outbox) this.#mark(outbox, subjects, wake);
  }

  send(): void {
    for (const queue of DELTA_QUEUES) this.#batchers[queue].send();
  }

  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  async drained(): Promise<void> {
    const batchers = Object.values(this.#batchers);
    // Deltas of pods that had no room in a node's delta are sent after the queue accepted that one.
    while (batchers.some(({ busy }) => busy)) await Promise.all(batchers.map((each) => each.drained()));
  }

  stop(): void {
    this.#stopping.abort();
  }

  #mark(outbox: ClusterOutbox, subjects: readonly Subject[], wake = false): void {
    // Deltas of whole nodes are made first, regardless of the order of marks.
    this.#batchers['node-deltas'].send();
    for (const subject of subjects) {
      const queue = outbox.pending.mark(subject, wake);
      if (queue) this.#batchers[queue].add({ cluster: outbox.name, node: subject.node });
    }
  }
}
