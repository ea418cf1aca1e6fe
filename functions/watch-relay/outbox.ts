import type { ClusterName } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import { DirtySet } from './dirty-set.ts';
import { Lane, type LaneName, type Spoken } from './lane.ts';
import type { RelayMetrics } from './relay-metrics.ts';

export interface OutboxDeps {
  readonly nodeDeltas: QueueSender;
  readonly podDeltas: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/**
 * Tells the queues what there is to tell of all clusters. It holds names, not messages: what a delta says, and its
 * version, are made right before the queue is called, from the view of its cluster, which must allow it then.
 */
export class Outbox {
  readonly #clusters = new Map<ClusterName, Spoken>();
  readonly #lanes: readonly Lane[];
  readonly #stopping = new AbortController();

  constructor({ nodeDeltas, podDeltas, ...deps }: OutboxDeps) {
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

  /**
   * Speaks for a cluster from now on, whenever `maySpeak` says yes: it is asked before each call of a queue. `told`: called after each,
   * with an error when the queue did not take what was told of the cluster.
   */
  open(
    cluster: ClusterName,
    view: ClusterView,
    maySpeak: () => boolean,
    told: (queue: LaneName, error?: unknown) => void = () => undefined,
  ): void {
    if (this.#stopping.signal.aborted) return;
    const spoken: Spoken = {
      dirty: new DirtySet(view),
      maySpeak: () => this.#clusters.get(cluster) === spoken && maySpeak(),
      told,
    };
    this.#clusters.set(cluster, spoken);
  }

  /** Notes of what there is something to tell; `wake`: of nodes where what is overdue is to be looked at at once. */
  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const spoken = this.#clusters.get(cluster);
    if (!spoken || subjects.length === 0) return;
    spoken.dirty.mark(subjects, wake);
    this.#send([spoken]);
  }

  /** Sends what waits and may be sent. To be called also when a cluster may speak again. */
  send(): void {
    this.#send(this.#clusters.values());
  }

  /** Forgets a cluster: another relay speaks for it now. What is on its way is told apart by its epoch. */
  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  /** Resolves once everything that may be sent is sent. */
  async drained(): Promise<void> {
    // What did not fit into a node's delta is sent when that was taken.
    while (this.#lanes.some(({ busy }) => busy)) await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  /** Gives up what is not sent yet, and takes nothing any more; the next relay sends it anew. */
  stop(): void {
    this.#stopping.abort();
    this.#clusters.clear();
  }

  #send(clusters: Iterable<Spoken>): void {
    const all = [...clusters];
    for (const lane of this.#lanes) lane.send(all);
  }
}
