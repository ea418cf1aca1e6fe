import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { FreeOutbox } from './free-outbox.ts';

/**
 * A relay's view whose outbox is always free: it returns the deltas for every change that it receives. It receives all
 * pods, and has a list of a node's pods as soon as the node is tainted.
 */
export class SendingView {
  readonly #view: ClusterView;
  readonly #outbox: FreeOutbox;
  readonly #pods = new Map<PodUid, LivePod>();
  readonly #listed = { nodes: false, pods: false };

  constructor(cluster: ClusterName, epoch: number) {
    this.#view = new ClusterView(cluster, epoch);
    this.#outbox = new FreeOutbox(this.#view);
  }

  set latest(latest: ClusterView['latest']) {
    this.#view.latest = latest;
  }

  get synced(): boolean {
    return this.#listed.nodes && this.#listed.pods;
  }

  get counts(): ClusterView['counts'] {
    return this.#view.counts;
  }

  replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Delta[] {
    this.#listed.nodes = true;
    return this.#send(this.#view.replaceNodes(nodes, now), now);
  }

  replacePods(pods: readonly LivePod[], now: EpochMs): readonly Delta[] {
    this.#listed.pods = true;
    this.#pods.clear();
    for (const pod of pods) this.#pods.set(pod.uid, pod);
    const listed = this.#view.followed().flatMap((node) => this.#list(node, now));
    return this.#send(listed, now);
  }

  upsertNode(node: LiveNode, now: EpochMs): readonly Delta[] {
    return this.#send(this.#view.upsertNode(node, now), now);
  }

  deleteNode(name: NodeName, now: EpochMs): readonly Delta[] {
    return this.#send(this.#view.deleteNode(name, now), now);
  }

  /** An API server reports the end of a pod before another pod of the same name. */
  upsertPod(pod: LivePod, now: EpochMs): readonly Delta[] {
    const isNamesake = ({ uid, namespace, name }: LivePod) =>
      uid !== pod.uid && namespace === pod.namespace && name === pod.name;
    const former = [...this.#pods.values()].find(isNamesake);
    const ended = former ? this.deletePod(former, now) : [];
    this.#pods.set(pod.uid, pod);
    return [...ended, ...this.#send(this.#view.upsertPod(pod, now), now)];
  }

  deletePod(pod: LivePod, now: EpochMs): readonly Delta[] {
    this.#pods.delete(pod.uid);
    return this.#send(this.#view.deletePod(pod), now);
  }

  resync(stored: readonly TaintedNode[], now: EpochMs, wake: boolean): readonly Delta[] {
    return this.#send(this.#view.resync(stored, now), now, wake);
  }

  #list(node: NodeName, now: EpochMs): readonly Subject[] {
    const pods = [...this.#pods.values()].filter((pod) => pod.node === node);
    return this.#view.replacePods(node, pods, now);
  }

  #send(subjects: readonly Subject[], now: EpochMs, wake = false): readonly Delta[] {
    const outbox = this.#outbox;
    outbox.mark(subjects, wake);
    if (!this.synced) return [];
    for (const node of this.#view.followed())
      if (!this.#view.isComplete(node)) outbox.mark(this.#list(node, now));
    return [...outbox.send(now)];
  }
}
