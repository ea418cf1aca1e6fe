import { ClusterView, type Subject } from '#functions/watch-relay/cluster-view.ts';
import { DirtySet } from '#functions/watch-relay/dirty-set.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { ClusterName, EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { DeltaMessage } from '#shared/queues/delta-message.ts';
import type { TaintedNode } from '#shared/store/store.ts';

/** A relay's view whose outbox is always free: whatever it hears, it answers with the deltas that are sent of it. */
export class SpeakingView {
  readonly #view: ClusterView;
  readonly #dirty: DirtySet;

  constructor(cluster: ClusterName, epoch: number) {
    this.#view = new ClusterView(cluster, epoch);
    this.#dirty = new DirtySet(this.#view);
  }

  get synced(): boolean {
    return this.#view.synced;
  }

  get counts(): ClusterView['counts'] {
    return this.#view.counts;
  }

  replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.replaceNodes(nodes, now), now);
  }

  replacePods(pods: readonly LivePod[], now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.replacePods(pods, now), now);
  }

  upsertNode(node: LiveNode, now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.upsertNode(node, now), now);
  }

  deleteNode(name: NodeName, now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.deleteNode(name, now), now);
  }

  upsertPod(pod: LivePod, now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.upsertPod(pod, now), now);
  }

  deletePod(pod: LivePod, now: EpochMs): readonly Delta[] {
    return this.#speak(this.#view.deletePod(pod), now);
  }

  resync(stored: readonly TaintedNode[], now: EpochMs, wake: boolean): readonly Delta[] {
    return this.#speak(this.#view.resync(stored, now), now, wake);
  }

  #speak(subjects: readonly Subject[], now: EpochMs, wake = false): readonly Delta[] {
    const dirty = this.#dirty;
    dirty.mark(subjects, wake);
    const sent: Delta[] = [];
    const send = (messages: Iterable<DeltaMessage>) => {
      for (const { delta } of messages) {
        dirty.sending(delta);
        dirty.taken(delta);
        dirty.answered(delta);
        sent.push(delta);
      }
    };
    send(dirty.nodeMessages(now));
    send(dirty.podMessages(now));
    return sent;
  }
}
