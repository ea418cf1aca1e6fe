import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Onlooker } from './simulated-api.ts';
import type { Truth } from './truth.ts';

/**
 * A relay's view that records all it sees, at that time. For nodes it records their states, as its API server reported them, and
 * that a node is deserted when its last pod is deleted. For pods it records those of tainted nodes whose list is complete.
 */
export class RecordingView extends ClusterView implements Onlooker {
  readonly #truth: Truth;
  readonly #clock: Clock;
  readonly #epoch: number;
  /** The state of each node when it was read last. */
  readonly #states = new Map<NodeName, number>();

  constructor(cluster: ClusterName, epoch: number, truth: Truth, clock: Clock) {
    super(cluster, epoch);
    this.#truth = truth;
    this.#clock = clock;
    this.#epoch = epoch;
  }

  all(states: ReadonlyMap<NodeName, number>): void {
    for (const [node, state] of states) this.#states.set(node, state);
  }

  one(node: NodeName, state: number): void {
    this.#states.set(node, state);
  }

  override replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Subject[] {
    for (const node of this.#states.keys()) this.#nodeSeen(node, now);
    return super.replaceNodes(nodes, now);
  }

  override upsertNode(node: LiveNode, now: EpochMs): readonly Subject[] {
    this.#nodeSeen(node.name, now);
    return super.upsertNode(node, now);
  }

  override deleteNode(name: NodeName, now: EpochMs): readonly Subject[] {
    this.#nodeSeen(name, now);
    return super.deleteNode(name, now);
  }

  override replacePods(node: NodeName, pods: readonly LivePod[], now: EpochMs): readonly Subject[] {
    if (this.follows(node)) for (const { uid } of pods) this.#truth.knowledge.podSeen(this.#epoch, uid, now);
    return this.#seeDeserted(node, now, () => super.replacePods(node, pods, now));
  }

  override upsertPod(pod: LivePod, now: EpochMs): readonly Subject[] {
    const { node, uid } = pod;
    if (node && this.follows(node) && this.isComplete(node))
      this.#truth.knowledge.podSeen(this.#epoch, uid, now);
    return super.upsertPod(pod, now);
  }

  override deletePod(pod: LivePod): readonly Subject[] {
    return this.#seeDeserted(pod.node, this.#clock.now(), () => super.deletePod(pod));
  }

  #seeDeserted(
    node: NodeName | undefined,
    now: EpochMs,
    apply: () => readonly Subject[],
  ): readonly Subject[] {
    const followed = node !== undefined && this.follows(node);
    const subjects = apply();
    const state = followed && !this.follows(node) ? this.#truth.desertedState(node) : undefined;
    if (followed && state !== undefined) this.#truth.knowledge.seen(this.#epoch, node, state, now);
    return subjects;
  }

  #nodeSeen(node: NodeName, now: EpochMs): void {
    const state = this.#states.get(node);
    if (state !== undefined) this.#truth.knowledge.seen(this.#epoch, node, state, now);
  }
}
