import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { type DeltaMessage, deltaMessage } from '#shared/queues/delta-message.ts';
import type { ClusterView, Subject } from './cluster-view.ts';

/** More pods are told of with their nodes: those that are gone have names of their own as long as that is not told. */
const MOST_PODS = 50_000;

/**
 * What of one cluster is still to be told: names of nodes and pods, and no word of what they are like. Deltas are made
 * from the view when they are sent, so nothing that waits gets old, and however long it waits, the set grows to the
 * size of the tainted part of the cluster and not beyond. A pod's name is kept when it is gone, until that is told.
 *
 * While a delta is on its way to a queue, nothing more of its node is ready for that queue: deltas of a node get there
 * in the order of their versions, however many calls go at a time.
 */
export class DirtySet {
  readonly #view: ClusterView;
  /** With each node whether it is to be woken. */
  readonly #nodes = new Waiting<boolean>();
  /** Likewise, of nodes that wait for the list of their pods. */
  readonly #unlisted = new Map<NodeName, boolean>();
  /** With each pod whether it was seen to go. */
  readonly #pods = new Waiting<Map<PodUid, boolean>>();
  #podCount = 0;

  constructor(view: ClusterView) {
    this.#view = view;
  }

  /** `wake` stays with a node until its delta was taken. */
  mark(subjects: readonly Subject[], wake = false): void {
    for (const { node, uid, gone = false } of subjects) {
      if (uid === undefined) {
        this.#markNode(node, wake);
        // It will tell of all its node's pods.
        this.#podCount -= this.#pods.get(node)?.size ?? 0;
        this.#pods.delete(node);
      } else if (this.#nodes.get(node) === undefined && !this.#unlisted.has(node)) {
        if (this.#podCount < MOST_PODS) this.#markPod(node, uid, gone);
        else this.mark([{ node }]);
      }
    }
  }

  /** How many nodes are dirty. */
  get nodes(): number {
    return this.#nodes.size + this.#unlisted.size;
  }

  /** How many pods are dirty, those of dirty nodes not counted. */
  get pods(): number {
    return this.#podCount;
  }

  /**
   * The messages of whole nodes that are ready, each made when it is asked for. What is not sent is made anew the next
   * time. A node whose pods are not listed yet waits.
   */
  *nodeMessages(now: EpochMs): Generator<DeltaMessage> {
    for (const [node, wake] of this.#nodes.ready) {
      if (this.#view.tells(node)) yield deltaMessage(this.#view.nodeDelta(node, now, wake));
      else this.#markNode(node, wake);
    }
  }

  /** The messages of single pods, likewise. Those of one node may go in one call, in which they keep their order. */
  *podMessages(now: EpochMs): Generator<DeltaMessage> {
    for (const [node, uids] of this.#pods.ready) {
      for (const [uid, gone] of uids) {
        const delta = this.#view.podDelta({ node, uid, gone }, now);
        if (delta) yield deltaMessage(delta);
        else this.#unmarkPod(node, uid);
      }
    }
  }

  /** A delta is on its way, until `answered`: what changes from now on is to be told again, after it. */
  sending(delta: Delta): void {
    const { node } = delta.ref;
    const uid = onlyPod(delta);
    if (uid === undefined) {
      this.#nodes.delete(node);
      this.#nodes.hold(node);
      return;
    }
    this.#pods.hold(node);
    this.#unmarkPod(node, uid);
  }

  /** The queue did not take a delta: what it told is still to be told, as it is by then. */
  failed(delta: Delta): void {
    const { node } = delta.ref;
    const uid = onlyPod(delta);
    const subject = uid === undefined ? { node } : { node, uid, gone: delta.kind === 'pod-gone' };
    this.mark([subject], delta.kind === 'node' && delta.wake);
  }

  /** The queue took a delta: pods of its node whose facts it had no room for are told one by one. */
  taken(delta: Delta): void {
    if (delta.kind !== 'node' || !delta.others) return;
    const { node } = delta.ref;
    this.mark(delta.others.map((uid) => ({ node, uid })));
  }

  /** A delta is on its way no longer, whatever became of it: more of its node may follow. Once for each `sending`. */
  answered(delta: Delta): void {
    const waiting = onlyPod(delta) === undefined ? this.#nodes : this.#pods;
    waiting.release(delta.ref.node);
  }

  /** A node is marked again when its pods are listed: until then nobody needs to look at it. */
  #markNode(node: NodeName, wake: boolean): void {
    const stays = wake || this.#nodes.get(node) === true || this.#unlisted.get(node) === true;
    const [to, from] = this.#view.tells(node) ? [this.#nodes, this.#unlisted] : [this.#unlisted, this.#nodes];
    from.delete(node);
    to.set(node, stays);
  }

  #markPod(node: NodeName, uid: PodUid, gone: boolean): void {
    const uids = this.#pods.get(node) ?? new Map<PodUid, boolean>();
    if (!uids.has(uid)) this.#podCount += 1;
    this.#pods.set(node, uids.set(uid, gone || uids.get(uid) === true));
  }

  #unmarkPod(node: NodeName, uid: PodUid): void {
    const uids = this.#pods.get(node);
    if (!uids?.delete(uid)) return;
    this.#podCount -= 1;
    if (uids.size === 0) this.#pods.delete(node);
  }
}

/** What waits, by node, in the order in which it got ready. What belongs to a held node is not. */
class Waiting<T> {
  readonly #ready = new Map<NodeName, T>();
  readonly #behind = new Map<NodeName, T>();
  readonly #holds = new Map<NodeName, number>();

  get size(): number {
    return this.#ready.size + this.#behind.size;
  }

  /** May be changed while it is walked through. */
  get ready(): Iterable<readonly [NodeName, T]> {
    return this.#ready;
  }

  get(node: NodeName): T | undefined {
    return this.#ready.get(node) ?? this.#behind.get(node);
  }

  set(node: NodeName, what: T): void {
    const waiting = this.#holds.has(node) ? this.#behind : this.#ready;
    waiting.set(node, what);
  }

  delete(node: NodeName): void {
    this.#ready.delete(node);
    this.#behind.delete(node);
  }

  /** Holds a node until it was released as often as held. */
  hold(node: NodeName): void {
    this.#holds.set(node, (this.#holds.get(node) ?? 0) + 1);
    this.#move(node, this.#ready, this.#behind);
  }

  release(node: NodeName): void {
    const left = (this.#holds.get(node) ?? 0) - 1;
    if (left > 0) {
      this.#holds.set(node, left);
      return;
    }
    this.#holds.delete(node);
    this.#move(node, this.#behind, this.#ready);
  }

  #move(node: NodeName, from: Map<NodeName, T>, to: Map<NodeName, T>): void {
    const what = from.get(node);
    if (what === undefined) return;
    from.delete(node);
    to.set(node, what);
  }
}
