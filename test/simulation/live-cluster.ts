import { type EpochMs, type NodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { DeletePreconditions, LiveNode, LivePod, PodRef } from '#shared/kubernetes/api.ts';
import type { Taint, Toleration } from '#shared/taints/taint.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import type { SimulationClock } from './simulation-clock.ts';

export type Heard =
  | { readonly kind: 'nodes'; readonly op: 'upsert' | 'delete'; readonly node: LiveNode }
  | { readonly kind: 'pods'; readonly op: 'upsert' | 'delete'; readonly pod: LivePod };

/** What a pod is created with. */
export interface PodSpec extends PodRef {
  readonly node: NodeName;
  readonly tolerations: readonly Toleration[];
  /** How long it takes to end once it is deleted. */
  readonly graceMs: number;
}

/** A cluster that tells what happens in it, in order for each kind. Deleted pods take their time to go. */
export class LiveCluster extends FakeCluster {
  readonly told: Readonly<Record<Heard['kind'], readonly Heard[]>>;
  /** Called when a pod is gone for good. */
  onGone: (spec: PodSpec) => void = () => undefined;
  /** Called after each change of a node (`undefined`: it was deleted) and of a pod's tolerations. */
  onNode: (name: NodeName, taints: readonly Taint[] | undefined) => void = () => undefined;
  onPod: (pod: LivePod) => void = () => undefined;
  /** Called when a deleted node has no pods any more but such as are going. */
  onDeserted: (name: NodeName) => void = () => undefined;
  /** Called when the API server takes a deletion. */
  onDeletion: (pod: LivePod, meant: PodUid) => void = () => undefined;
  readonly #clock: SimulationClock;
  readonly #specs = new Map<PodUid, PodSpec>();
  readonly #told: Record<Heard['kind'], Heard[]> = { nodes: [], pods: [] };
  #listeners: (() => void)[] = [];
  #created = 0;

  constructor(clock: SimulationClock) {
    super(clock);
    this.#clock = clock;
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

  setNode(name: NodeName, taints: readonly Taint[]): void {
    const node = this.putNode({ name, taints });
    this.#tell({ kind: 'nodes', op: 'upsert', node });
    this.onNode(name, taints);
  }

  override removeNode(name: NodeName): LiveNode | undefined {
    const node = super.removeNode(name);
    if (!node) return undefined;
    this.#tell({ kind: 'nodes', op: 'delete', node });
    this.onNode(name, undefined);
    this.#desert(name);
    return node;
  }

  #desert(name: NodeName | undefined): void {
    const staying = [...this.livePods.values()].some((pod) => pod.node === name && !pod.terminating);
    if (name !== undefined && !staying && !this.liveNodes.has(name)) this.onDeserted(name);
  }

  createPod(spec: PodSpec): void {
    this.#created += 1;
    const { namespace, name, node, tolerations } = spec;
    const uid = podUid(`${name}.${this.#created}`);
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
      this.#tell({ kind: 'pods', op: 'delete', pod: last });
      this.onGone(spec);
    });
  }

  override async markDisrupted(pod: PodRef, uid: PodUid): Promise<LivePod> {
    const marked = await super.markDisrupted(pod, uid);
    this.#tell({ kind: 'pods', op: 'upsert', pod: marked });
    return marked;
  }

  override async deletePod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<void> {
    this.mustBeInTime(notAfter);
    const found = this.find(pod, preconditions);
    this.onDeletion(found, preconditions.uid);
    this.terminate(found);
  }

  #change(changed: Omit<LivePod, 'resourceVersion'>): void {
    const pod = this.putPod(changed);
    this.#tell({ kind: 'pods', op: 'upsert', pod });
    this.onPod(pod);
  }
}
