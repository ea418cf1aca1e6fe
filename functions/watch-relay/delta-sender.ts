import type { ClusterName } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import { DirtySet } from './dirty-set.ts';
import { Lane, type Spoken } from './lane.ts';
import type { DeltaQueue, Outbox } from './outbox.ts';
import type { RelayMetrics } from './relay-metrics.ts';

export interface DeltaSenderDeps {
  readonly nodeDeltas: QueueSender;
  readonly podDeltas: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/**
 * The outbox whose deltas go to two queues. It holds names, not messages: what a delta says, and its version, are made right
 * before the queue is called, from the view of its cluster, which must allow it then.
 */
export class DeltaSender implements Outbox {
  readonly #clusters = new Map<ClusterName, Spoken>();
  readonly #lanes: readonly Lane[];
  readonly #stopping = new AbortController();

  constructor({ nodeDeltas, podDeltas, ...deps }: DeltaSenderDeps) {
    const { signal } = this.#stopping;
    const waiting = (kind: 'nodes' | 'pods') => () =>
      this.#clusters.values().reduce((sum, { dirty }) => sum + dirty[kind], 0);
    const common = { ...deps, signal, answered: (clusters: Iterable<Spoken>) => this.#send(clusters) };
    this.#lanes = [
      new Lane({
        ...common,
        name: 'node-deltas',
        queue: nodeDeltas,
        kind: 'node',
        waiting: waiting('nodes'),
      }),
      new Lane({ ...common, name: 'pod-deltas', queue: podDeltas, kind: 'pod', waiting: waiting('pods') }),
    ];
  }

  open(
    cluster: ClusterName,
    view: ClusterView,
    maySpeak: () => boolean,
    told: (queue: DeltaQueue, error?: unknown) => void = () => undefined,
  ): void {
    if (this.#stopping.signal.aborted) return;
    const spoken: Spoken = {
      dirty: new DirtySet(view),
      maySpeak: () => this.#clusters.get(cluster) === spoken && maySpeak(),
      told,
    };
    this.#clusters.set(cluster, spoken);
  }

  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const spoken = this.#clusters.get(cluster);
    if (!spoken || subjects.length === 0) return;
    spoken.dirty.mark(subjects, wake);
    this.#send([spoken]);
  }

  send(): void {
    this.#send(this.#clusters.values());
  }

  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  async drained(): Promise<void> {
    // What did not fit into a node's delta is sent when that was taken.
    while (this.#lanes.some(({ busy }) => busy)) await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  stop(): void {
    this.#stopping.abort();
    this.#clusters.clear();
  }

  #send(clusters: Iterable<Spoken>): void {
    const all = [...clusters];
    for (const lane of this.#lanes) lane.send(all);
  }
}
