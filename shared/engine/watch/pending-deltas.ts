import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import type { DeltaQueue } from './outbox.ts';

/** More pods are told of with their nodes: those that are gone have names of their own as long as that is not told. */
const MAX_PODS = 50_000;

/** What a delta tells of: it is marked again if it gets nowhere. */
export function subjectOf(delta: Delta): Subject {
  const { node } = delta.ref;
  const uid = onlyPod(delta);
  return uid === undefined ? { node } : { node, uid, gone: delta.kind === 'pod-gone' };
}

/**
 * What of one cluster is still to be told: names of nodes and pods, and no word of what they are like. Deltas are made
 * from the view when they are taken, so nothing that waits gets old, and however long it waits, it grows to the size of the
 * tainted part of the cluster and not beyond. A pod's name is kept when it is gone, until that is told.
 */
export class PendingDeltas {
  readonly #view: ClusterView;
  /** With each node whether it is to be woken. */
  readonly #nodes = new Map<NodeName, boolean>();
  /** By node, with each pod whether it was seen to go. */
  readonly #pods = new Map<NodeName, Map<PodUid, boolean>>();
  #podCount = 0;

  constructor(view: ClusterView) {
    this.#view = view;
  }

  /**
   * There is something to tell. Returns to which queue; `undefined`: to none, for the delta of the pod's node, which waits already,
   * will tell it. `wake` stays with a node until its delta is taken.
   */
  mark({ node, uid, gone = false }: Subject, wake = false): DeltaQueue | undefined {
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
    // It will tell of all its node's pods.
    this.#podCount -= this.#pods.get(node)?.size ?? 0;
    this.#pods.delete(node);
    return 'node-deltas';
  }

  /** How many nodes, or how many pods of other nodes, there is something to tell of. */
  count(queue: DeltaQueue): number {
    return queue === 'node-deltas' ? this.#nodes.size : this.#podCount;
  }

  /**
   * What there is to tell a queue of a node, in order, each made when it is asked for, and told by whoever asks. A node whose pods are
   * not listed yet waits: it is marked again when they are.
   */
  *take(queue: DeltaQueue, node: NodeName, now: EpochMs): Generator<Delta> {
    if (queue === 'pod-deltas') {
      yield* this.#takePods(node, now);
      return;
    }
    const wake = this.#nodes.get(node);
    if (wake === undefined || !this.#view.tells(node)) return;
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
