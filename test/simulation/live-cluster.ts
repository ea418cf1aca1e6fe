import type { PodRef } from '#shared/eviction/identity.ts';
import { type ClusterName, type NodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { DeletePreconditions, LiveNode, LivePod, PodOwner } from '#shared/kubernetes/api.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import { type LiveTaint, NODE_UNREACHABLE, type Toleration } from '#shared/taints/taint.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { Chronicle, type Happening } from './chronicle.ts';
import type { NodeLeases } from './node-leases.ts';
import type { Sent } from './simulated-api.ts';
import type { SimulationClock } from './simulation-clock.ts';
import type { Truth } from './truth.ts';

/** What a pod is created with. */
export interface PodSpec extends PodRef {
  readonly labels: Readonly<Record<string, string>>;
  readonly owner?: PodOwner;
  readonly node: NodeName;
  readonly tolerations: readonly Toleration[];
  /** How long it takes to end once it is deleted. */
  readonly graceMs: number;
}

/** Told of what is done in a cluster, and of what the service does there. */
export interface Witness {
  node(name: NodeName, taints: readonly LiveTaint[] | undefined): void;
  pod(pod: LivePod): void;
  mark(pod: LivePod, sent: Sent): void;
  /** A budget forbids to evict a pod. */
  blocked(pod: PodUid): void;
  deletion(pod: LivePod, meant: PodUid, sent: Sent): void;
}

/** A cluster that notes what happens in it. Deleted pods take their time to go. */
export class LiveCluster extends FakeCluster {
  readonly name: ClusterName;
  readonly truth: Truth;
  readonly nodeChronicle = new Chronicle<LiveNode>(({ name }) => name);
  /** Of its nodes, where its control plane has a stale view; absent: nobody reads any. */
  readonly leases: NodeLeases | undefined;
  readonly podChronicle = new Chronicle<LivePod>(({ uid }) => uid);
  /** Called when a pod is gone for good. */
  onGone: (spec: PodSpec) => void = () => undefined;
  /** Called when the service has marked a pod. */
  onMarked: (pod: LivePod) => void = () => undefined;
  /** The most pods that there ever were at a time. */
  mostPods = 0;
  readonly #witness: Witness;
  readonly #clock: SimulationClock;
  readonly #specs = new Map<PodUid, PodSpec>();
  #created = 0;
  #version = '1';

  constructor(
    name: ClusterName,
    clock: SimulationClock,
    truth: Truth,
    witness: Witness,
    leases?: NodeLeases,
  ) {
    super(clock);
    this.leases = leases;
    this.name = name;
    this.truth = truth;
    this.#clock = clock;
    this.#witness = witness;
  }

  /** Of the last change. */
  get version(): string {
    return this.#version;
  }

  #note<T extends LiveNode | LivePod>(chronicle: Chronicle<T>, happening: Omit<Happening<T>, 'at'>): void {
    this.#version = happening.object.resourceVersion;
    chronicle.add({ ...happening, at: this.#clock.now() });
  }

  /** `by`: who writes the list. The server notes that, and the second. */
  setNode(name: NodeName, taints: readonly LiveTaint[], by: string): void {
    const at = this.#clock.now();
    const second = new Date(Math.floor(at / 1000) * 1000).toISOString();
    const taintsStamp = `${by}@${second}`;
    const node = this.putNode({ name, taints, taintsStamp, zone: zoneOf(name) });
    const state = this.truth.nodeIs(at, name, taints, node.taintsStamp);
    this.leases?.called(
      name,
      taints.some(({ key }) => key === NODE_UNREACHABLE),
      at,
    );
    this.#witness.node(name, taints);
    this.#note(this.nodeChronicle, { kind: 'upsert', object: node, state });
  }

  override async getNodeLease(name: NodeName): Promise<NodeLease | undefined> {
    return this.leases?.leaseAt(name, this.#clock.now());
  }

  override removeNode(name: NodeName): LiveNode | undefined {
    const node = super.removeNode(name);
    if (!node) return undefined;
    const at = this.#clock.now();
    const state = this.truth.nodeIs(at, name, undefined);
    this.#witness.node(name, undefined);
    this.#note(this.nodeChronicle, { kind: 'delete', object: node, state });
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
    const { namespace, name, labels, owner, node, tolerations } = spec;
    const uid = podUid(`${this.name}.${name}.${this.#created}`);
    const podSince = Math.floor(this.#clock.now() / 1000) * 1000;
    this.#specs.set(uid, spec);
    const about = {
      namespace,
      name,
      labels,
      node,
      tolerations,
      podSince,
      terminating: false,
      disrupted: false,
    };
    this.#change({ uid, ...about, ...(owner ? { owner } : {}) });
    this.mostPods = Math.max(this.mostPods, this.livePods.size);
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
      this.#note(this.podChronicle, { kind: 'delete', object: last });
      this.onGone(spec);
    });
  }

  /** As {@link markDisrupted}; `sent` says how it came to that. */
  async markDisruptedAs(pod: PodRef, uid: PodUid, sent: Sent): Promise<LivePod> {
    const marked = await this.markDisrupted(pod, uid, sent.sentAt);
    this.#witness.mark(marked, sent);
    this.#note(this.podChronicle, { kind: 'upsert', object: marked });
    this.onMarked(marked);
    return marked;
  }

  /** As {@link deletePod}; `sent` says how it came to that. */
  async deletePodAs(pod: PodRef, preconditions: DeletePreconditions, sent: Sent): Promise<void> {
    const found = this.find(pod, preconditions);
    this.#witness.deletion(found, preconditions.uid, sent);
    this.terminate(found);
  }

  /** As {@link evictPod}. */
  async evictPodAs(pod: PodRef, preconditions: DeletePreconditions, sent: Sent): Promise<EvictionAnswer> {
    const found = this.find(pod, preconditions);
    const answer = this.askBudgets(found);
    if (answer.kind === 'evicted') await this.deletePodAs(pod, preconditions, { ...sent, means: 'evict' });
    else this.#witness.blocked(found.uid);
    return answer;
  }

  #change(changed: Omit<LivePod, 'resourceVersion'>): void {
    const pod = this.putPod(changed);
    this.truth.podIs(this.#clock.now(), pod);
    this.#witness.pod(pod);
    this.#note(this.podChronicle, { kind: 'upsert', object: pod });
  }
}

/** Half of the nodes are in each zone. */
export const zoneOf = (node: NodeName): string => (Number(node.slice(1)) % 2 === 0 ? 'b' : 'a');
