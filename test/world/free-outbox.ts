import { deltaMessage } from '#shared/aws/delta-message.ts';
import type { ClusterView, Subject } from '#shared/engine/watch/cluster-view.ts';
import { PendingDeltas } from '#shared/engine/watch/pending-deltas.ts';
import { DELTA_QUEUES, type DeltaQueue } from '#shared/engine/watch/ports.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Sends the deltas of a cluster whose queues are always free. */
export class FreeOutbox {
  readonly #pending: PendingDeltas;
  readonly #nodes: Readonly<Record<DeltaQueue, Set<NodeName>>> = {
    'node-deltas': new Set(),
    'pod-deltas': new Set(),
  };

  constructor(view: ClusterView) {
    this.#pending = new PendingDeltas(view);
  }

  mark(subjects: readonly Subject[], wake = false): void {
    for (const subject of subjects) {
      const queue = this.#pending.mark(subject, wake);
      if (queue) this.#nodes[queue].add(subject.node);
    }
  }

  /** Yields the pending deltas, those of whole nodes first. */
  *send(now: EpochMs): Generator<Delta> {
    for (const queue of DELTA_QUEUES) {
      for (const node of this.#nodes[queue]) {
        this.#nodes[queue].delete(node);
        for (const pending of this.#pending.take(queue, node, now)) {
          const { delta } = deltaMessage(pending);
          yield delta;
          if (delta.kind === 'node') this.mark((delta.others ?? []).map((uid) => ({ node, uid })));
        }
      }
    }
  }
}
