import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, type NodeName, nodeName, type PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at } from '#test/unit/eviction/builders.ts';
import { FreeOutbox } from '#test/world/free-outbox.ts';
import { liveNode, livePod } from './live-objects.ts';

const NODES = ['n1', 'n2', 'n3'].map(nodeName);
const KEYS = ['a', 'b'];

/** A cluster, the view of a relay that follows it, and a store that applies its deltas. */
class Scene {
  readonly view = new ClusterView(clusterName('c1'), 1);
  readonly #outbox = new FreeOutbox(this.view);
  readonly #nodes = new Map<NodeName, readonly string[]>();
  readonly #pods = new Map<PodUid, LivePod>();
  readonly #stored = new Map<NodeName, { taints: readonly string[]; readonly pods: Set<PodUid> }>();
  #sequence = 0;
  #seconds = 0;

  get now(): EpochMs {
    return at(this.#seconds++);
  }

  start(): void {
    this.#mark(this.view.replaceNodes([], this.now));
    this.#mark(this.view.resync([], this.now));
  }

  setNode(name: NodeName, keys: readonly string[]): void {
    this.#nodes.set(name, keys);
    this.#mark(this.view.upsertNode(liveNode(name, ...keys), this.now));
  }

  removeNode(name: NodeName): void {
    this.#nodes.delete(name);
    this.#mark(this.view.deleteNode(name, this.now));
  }

  /** Binds a pod to a node that exists. */
  addPod(uid: string, node: NodeName): void {
    const pod = livePod(uid, { node });
    if (!this.#nodes.has(node) || this.#pods.has(pod.uid)) return;
    this.#pods.set(pod.uid, pod);
    this.#mark(this.view.upsertPod(pod, this.now));
  }

  /**
   * `ends`: the pod is deleted; otherwise it starts to terminate. `disrupted`: a taint manager deleted and
   * recorded it.
   */
  removePod(uid: string, ends: boolean, disrupted: boolean): void {
    const pod = [...this.#pods.values()].find((each) => each.uid === uid);
    if (!pod) return;
    this.#pods.delete(pod.uid);
    if (disrupted && pod.node) this.#stored.get(pod.node)?.pods.delete(pod.uid);
    const last = { ...pod, disrupted };
    this.#mark(
      ends ? this.view.deletePod(last) : this.view.upsertPod({ ...last, terminating: true }, this.now),
    );
  }

  /** Answers the list of a node's pods. */
  list(node: NodeName): void {
    if (this.view.follows(node)) this.#mark(this.view.replacePods(node, this.#podsOn(node), this.now));
  }

  send(): void {
    const { view, now } = this;
    for (const delta of this.#outbox.send(now)) {
      assert.ok(view.isComplete(delta.ref.node), 'nothing is told of a node whose pods are not listed');
      assert.ok(delta.version.sequence > this.#sequence, 'every delta is newer than the one before');
      this.#sequence = delta.version.sequence;
      this.#take(delta);
    }
  }

  /** Returns the stored state and the real state of tainted nodes; a deleted node counts while it has pods. */
  settled() {
    for (const node of this.view.followed()) if (!this.view.isComplete(node)) this.list(node);
    this.send();
    const stored = [...this.#stored].filter(([, { taints }]) => taints.length > 0);
    return {
      stored: stored.map(([node, { taints, pods }]) => stateOf(node, taints, [...pods])),
      real: [...this.#nodes]
        .filter(([, keys]) => keys.length > 0)
        .map(([node, keys]) =>
          stateOf(
            node,
            keys,
            this.#podsOn(node).map(({ uid }) => uid),
          ),
        ),
      gone: (node: NodeName) => !this.#nodes.has(node),
      podsOn: (node: NodeName) => this.#podsOn(node).map(({ uid }) => uid),
    };
  }

  #podsOn(node: NodeName): readonly LivePod[] {
    return [...this.#pods.values()].filter((pod) => pod.node === node);
  }

  #mark(subjects: readonly Subject[]): void {
    this.#outbox.mark(subjects);
  }

  #take(delta: Delta): void {
    const { node } = delta.ref;
    const taints = delta.taints.map(({ key }) => key);
    const pods = this.#stored.get(node)?.pods ?? new Set<PodUid>();
    if (delta.kind === 'pod') pods.add(delta.pod.uid);
    if (delta.kind === 'pod-gone') pods.delete(delta.uid);
    const all = delta.kind === 'node' ? new Set(delta.pods.map(({ uid }) => uid)) : pods;
    this.#stored.set(node, { taints, pods: all });
  }
}

const stateOf = (node: NodeName, taints: readonly string[], pods: readonly PodUid[]) => ({
  node,
  taints: [...taints].sort().join(' '),
  pods: [...pods].sort().join(' '),
});

const byNode = (a: { readonly node: NodeName }, b: { readonly node: NodeName }) => (a.node < b.node ? -1 : 1);

const node = fc.constantFrom(...NODES);
const uid = fc.constantFrom('u1', 'u2', 'u3', 'u4');
const step = fc.oneof(
  fc.tuple(node, fc.subarray(KEYS)).map(
    ([name, keys]) =>
      (scene: Scene) =>
        scene.setNode(name, keys),
  ),
  node.map((name) => (scene: Scene) => scene.removeNode(name)),
  fc.tuple(uid, node).map(
    ([pod, name]) =>
      (scene: Scene) =>
        scene.addPod(pod, name),
  ),
  fc.tuple(uid, fc.boolean(), fc.boolean()).map(
    ([pod, ends, disrupted]) =>
      (scene: Scene) =>
        scene.removePod(pod, ends, disrupted),
  ),
  node.map((name) => (scene: Scene) => scene.list(name)),
  fc.constant((scene: Scene) => scene.send()),
);

test('the store gets the real state, for any changes and any times of lists and sends', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const scene = new Scene();
      scene.start();
      for (const happen of steps) happen(scene);
      const { stored, real, gone, podsOn } = scene.settled();
      const there = stored.filter((each) => !gone(each.node));
      assert.deepEqual(there.sort(byNode), [...real].sort(byNode));
      for (const { node: name, pods } of stored.filter((each) => gone(each.node))) {
        assert.equal(pods, podsOn(name).sort().join(' '));
        assert.notEqual(pods, '', 'a node that is gone is remembered no longer than its pods');
      }
    }),
    { numRuns: 500 },
  );
});
