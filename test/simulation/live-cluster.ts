import {
  type ClusterName,
  type EpochMs,
  type NodeName,
  type PodUid,
  podUid,
} from '#shared/eviction/identity.ts';
import type { DeletePreconditions, LiveNode, LivePod, PodRef } from '#shared/kubernetes/api.ts';
import type { LiveTaint, Taint, Toleration } from '#shared/taints/taint.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import type { SentDeletion } from './simulated-api.ts';
import type { SimulationClock } from './simulation-clock.ts';
import type { Truth } from './truth.ts';

/** What happened, as a watch tells it. `state`: the node's state that came of it, by its number in the truth. */
export type Heard =
  | {
      readonly kind: 'nodes';
      readonly op: 'upsert' | 'delete';
      readonly node: LiveNode;
      readonly at: EpochMs;
      readonly state: number;
    }
  | { readonly kind: 'pods'; readonly op: 'upsert' | 'delete'; readonly pod: LivePod; readonly at: EpochMs };

/** What a pod is created with. */
export interface PodSpec extends PodRef {
  readonly node: NodeName;
  readonly tolerations: readonly Toleration[];
  /** How long it takes to end once it is deleted. */
  readonly graceMs: number;
}

/** Told of what is done in a cluster, and of what the service does there. */
export interface Witness {
  node(name: NodeName, taints: readonly Taint[] | undefined): void;
  pod(pod: LivePod): void;
  deletion(pod: LivePod, meant: PodUid, sent: SentDeletion): void;
}

/** A cluster that tells what happens in it, in order for each kind. Deleted pods take their time to go. */
export class LiveCluster extends FakeCluster {
  readonly name: ClusterName;
  readonly truth: Truth;
  readonly told: { readonly [Kind in Heard['kind']]: readonly Heard[] };
  /** Called when a pod is gone for good. */
  onGone: (spec: PodSpec) => void = () => undefined;
  readonly #witness: Witness;
  readonly #clock: SimulationClock;
  readonly #specs = new Map<PodUid, PodSpec>();
  readonly #told: Record<Heard['kind'], Heard[]> = { nodes: [], pods: [] };
  #listeners: (() => void)[] = [];
  #created = 0;

  constructor(name: ClusterName, clock: SimulationClock, truth: Truth, witness: Witness) {
    super(clock);
    this.name = name;
    this.truth = truth;
    this.#clock = clock;
    this.#witness = witness;
    this.told = this.#told;
  }

  /** What happened to one kind after the first `heard` changes, as soon as there is something. */
  async next(kind: Heard['kind'], heard: number): Promise<Heard> {
    for (;;) {
      const change = this.#told[kind][heard];
      if (change) return change;
      await new Promise<void>((resolve) => this.#listeners.push(resolve));
    }
  }

  #tell(change: Heard): void {
    this.#told[change.kind].push(change);
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listen of listeners) listen();
  }

  /** `by`: who writes the list. The server notes that, and the second. */
  setNode(name: NodeName, taints: readonly LiveTaint[], by: string): void {
    const at = this.#clock.now();
    const node = this.putNode({ name, taints, taintsStamp: `${by}@${Math.floor(at / 1000)}` });
    const state = this.truth.nodeIs(at, name, taints, node.taintsStamp);
    this.#witness.node(name, taints);
    this.#tell({ kind: 'nodes', op: 'upsert', node, at, state });
  }

  override removeNode(name: NodeName): LiveNode | undefined {
    const node = super.removeNode(name);
    if (!node) return undefined;
    const at = this.#clock.now();
    const state = this.truth.nodeIs(at, name, undefined);
    this.#witness.node(name, undefined);
    this.#tell({ kind: 'nodes', op: 'delete', node, at, state });
    this.#desert(name);
    return node;
  }

  /** The last pod of a deleted node that is neither gone nor going takes the memory of its taints along. */
  #desert(name: NodeName | undefined): void {
    const staying = [...this.livePods.values()].some((pod) => pod.node === name && !pod.terminating);
    if (name !== undefined && !staying && !this.liveNodes.has(name)) {
      this.truth.nodeIsDeserted(this.#clock.now(), name);
    }
  }

  createPod(spec: PodSpec): void {
    this.#created += 1;
    const { namespace, name, node, tolerations } = spec;
    const uid = podUid(`${this.name}.${name}.${this.#created}`);
    const podSince = Math.floor(this.#clock.now() / 1000) * 1000;
    this.#specs.set(uid, spec);
    const about = { namespace, name, node, tolerations, podSince, terminating: false, disrupted: false };
    this.#change({ uid, ...about });
  }

  changeTolerations(pod: LivePod, tolerations: readonly Toleration[]): void {
    this.#change({ ...pod, tolerations });
  }

  /** Somebody else deletes a pod. */
  terminate(pod: LivePod): void {
    if (pod.terminating) return;
    this.#change({ ...pod, terminating: true });
    this.#desert(pod.node);
    const spec = this.#specs.get(pod.uid);
    if (!spec) throw new Error(`pod ${pod.uid} was never created`);
    this.#clock.setAlarm(this.#clock.now() + spec.graceMs, () => {
      const last = this.removePod(pod);
      if (last?.uid !== pod.uid) throw new Error(`pod ${pod.uid} is not there to end`);
      this.truth.podIsGone(this.#clock.now(), last.node);
      this.#tell({ kind: 'pods', op: 'delete', pod: last, at: this.#clock.now() });
      this.onGone(spec);
    });
  }

  override async markDisrupted(pod: PodRef, uid: PodUid): Promise<LivePod> {
    const marked = await super.markDisrupted(pod, uid);
    this.#tell({ kind: 'pods', op: 'upsert', pod: marked, at: this.#clock.now() });
    return marked;
  }

  /** As {@link deletePod}; `sent` says how it came to that. */
  async deletePodAs(pod: PodRef, preconditions: DeletePreconditions, sent: SentDeletion): Promise<void> {
    const found = this.find(pod, preconditions);
    this.#witness.deletion(found, preconditions.uid, sent);
    this.terminate(found);
  }

  #change(changed: Omit<LivePod, 'resourceVersion'>): void {
    const pod = this.putPod(changed);
    this.truth.podIs(this.#clock.now(), pod);
    this.#witness.pod(pod);
    this.#tell({ kind: 'pods', op: 'upsert', pod, at: this.#clock.now() });
  }
}
