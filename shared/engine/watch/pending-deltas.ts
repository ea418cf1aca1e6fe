import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import type { DeltaQueue } from './ports.ts';

/**
 * Maximum pods that are marked by themselves; further pods are sent with their nodes. Names of removed pods take
 * memory.
 */
const MAX_PODS = 50_000;

export function subjectOf(delta: Delta): Subject {
  const { node } = delta.ref;
  const uid = onlyPod(delta);
  return uid === undefined ? { node } : { node, uid, gone: delta.kind === 'pod-gone' };
}

/**
 * Names of nodes and pods, without state: deltas are made from the view when they are taken, so nothing that waits gets
 * stale, and the list never outgrows the tainted part of the cluster.
 */
export class PendingDeltas {
  readonly #view: ClusterView;
  readonly #nodes = new Map<NodeName, boolean>();
  /** Pods by node, each with whether it was seen to be removed. */
  readonly #pods = new Map<NodeName, Map<PodUid, boolean>>();
  #podCount = 0;

  constructor(view: ClusterView) {
    this.#view = view;
  }

  /**
   * Marks a subject. Returns its queue; `undefined`: the node's pending delta covers the pod. A node's `wake` is kept.
   */
  mark({ node, uid, gone = false }: Subject, wake: boolean): DeltaQueue | undefined {
    if (uid !== undefined) {
      if (this.#nodes.has(node)) return undefined;
      if (this.#podCount < MAX_PODS) {
        const uids = this.#pods.get(node) ?? new Map<PodUid, boolean>();
        if (!uids.has(uid)) this.#podCount += 1;
        this.#pods.set(node, uids.set(uid, gone || uids.get(uid) === true));
        return 'pod-deltas';
      }
    }
    this.#nodes.set(node, wake || this.#nodes.get(node) === true);
    // The node delta covers all pods of its node.
    this.#podCount -= this.#pods.get(node)?.size ?? 0;
    this.#pods.delete(node);
    return 'node-deltas';
  }

  count(queue: DeltaQueue): number {
    return queue === 'node-deltas' ? this.#nodes.size : this.#podCount;
  }

  /**
   * Yields a node's deltas in order; each is made when requested, and the caller must send it. A node whose pods aren't
   * listed yet is marked again when they are.
   */
  *take(queue: DeltaQueue, node: NodeName, now: EpochMs): Generator<Delta> {
    if (queue === 'pod-deltas') {
      yield* this.#takePods(node, now);
      return;
    }
    const wake = this.#nodes.get(node);
    if (wake === undefined || !this.#view.isComplete(node)) return;
    this.#nodes.delete(node);
    yield this.#view.nodeDelta(node, now, wake);
  }

  *#takePods(node: NodeName, now: EpochMs): Generator<Delta> {
    const uids = this.#pods.get(node) ?? new Map<PodUid, boolean>();
    for (const [uid, gone] of uids) {
      uids.delete(uid);
      this.#podCount -= 1;
      if (uids.size === 0) this.#pods.delete(node);
      const delta = this.#view.podDelta({ node, uid, gone }, now);
      if (delta) yield delta;
    }
  }
}
