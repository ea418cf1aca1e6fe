import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { type DeltaMessage, deltaMessage } from '#shared/queues/delta-message.ts';
import type { ClusterView, Subject } from './cluster-view.ts';

/**
 * What of one cluster is still to be told: names of nodes and pods, and no word of what they are like. Deltas are made
 * from the view when they are sent, so nothing that waits gets old, and however long it waits, the set grows to the
 * size of the tainted part of the cluster and not beyond. A pod's name is kept when it is gone, until that is told.
 */
export class DirtySet {
  readonly #view: ClusterView;
  /** With each node whether it is to be woken. */
  readonly #nodes = new Map<NodeName, boolean>();
  readonly #pods = new Map<NodeName, Set<PodUid>>();

  constructor(view: ClusterView) {
    this.#view = view;
  }

  /** `wake` stays with a node until its delta was taken. */
  mark(subjects: readonly Subject[], wake = false): void {
    for (const { node, uid } of subjects) {
      if (uid === undefined) {
        this.#nodes.set(node, wake || this.#nodes.get(node) === true);
        // It will tell of all its node's pods.
        this.#pods.delete(node);
      } else if (!this.#nodes.has(node)) {
        const uids = this.#pods.get(node) ?? new Set();
        this.#pods.set(node, uids.add(uid));
      }
    }
  }

  get nodes(): number {
    return this.#nodes.size;
  }

  get pods(): number {
    return [...this.#pods.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** The messages of whole nodes, each made when it is asked for. What is not sent is made anew the next time. */
  *nodeMessages(now: EpochMs): Generator<DeltaMessage> {
    for (const [node, wake] of this.#nodes) yield deltaMessage(this.#view.nodeDelta(node, now, wake));
  }

  /** The messages of single pods, likewise. */
  *podMessages(now: EpochMs): Generator<DeltaMessage> {
    for (const [node, uids] of this.#pods) {
      for (const uid of uids) yield deltaMessage(this.#view.podDelta(node, uid, now));
    }
  }

  /** A delta is on its way: what changes from now on is to be told again. */
  sending(delta: Delta): void {
    const { node } = delta.ref;
    const uid = onlyPod(delta);
    if (uid === undefined) {
      this.#nodes.delete(node);
      return;
    }
    const uids = this.#pods.get(node);
    uids?.delete(uid);
    if (uids?.size === 0) this.#pods.delete(node);
  }

  /** The queue did not take a delta: what it told is still to be told, as it is by then. */
  failed(delta: Delta): void {
    const { node } = delta.ref;
    const uid = onlyPod(delta);
    this.mark([uid === undefined ? { node } : { node, uid }], delta.kind === 'node' && delta.wake);
  }

  /** The queue took a delta: pods of its node whose facts it had no room for are told one by one. */
  taken(delta: Delta): void {
    if (delta.kind !== 'node' || !delta.others) return;
    const { node } = delta.ref;
    this.mark(delta.others.map((uid) => ({ node, uid })));
  }
}
