import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { OutboxLane } from './outbox-lane.ts';
import type { RelayMetrics } from './relay-metrics.ts';

export interface OutboxDeps {
  readonly nodeDeltas: QueueSender;
  readonly podDeltas: QueueSender;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/**
 * What waits to be sent, per queue. It holds the newest delta per node and per pod and no more: a delta is the
 * whole truth about its object, so an older one that was not sent yet is worth nothing. However long a queue is
 * unreachable, the outbox grows to the size of the tainted part of the fleet and not beyond.
 */
export class Outbox {
  readonly #nodes: OutboxLane;
  readonly #pods: OutboxLane;

  constructor({ nodeDeltas, podDeltas, log, metrics }: OutboxDeps) {
    this.#nodes = new OutboxLane('node-deltas', nodeDeltas, log, metrics);
    this.#pods = new OutboxLane('pod-deltas', podDeltas, log, metrics);
  }

  /** Takes deltas of one cluster, in their order. */
  add(deltas: readonly Delta[]): void {
    for (const delta of deltas) {
      if (delta.kind === 'node') {
        // It tells of all its node's pods, so what waits about them is older and redundant.
        this.#pods.dropNode(nodeKey(delta.ref));
        this.#nodes.put(delta);
      } else {
        this.#pods.put(delta);
      }
    }
  }

  /** Forgets what waits of a cluster whose lease was lost: another relay speaks for it now. */
  dropCluster(cluster: ClusterName): void {
    this.#nodes.dropCluster(cluster);
    this.#pods.dropCluster(cluster);
  }

  /** Resolves once everything added so far is sent. */
  async drained(): Promise<void> {
    await Promise.all([this.#nodes.drained(), this.#pods.drained()]);
  }

  /** Gives up what is not sent yet, and takes nothing any more; the next relay sends it anew. */
  stop(): void {
    this.#nodes.stop();
    this.#pods.stop();
  }
}
