import type { Owner } from '#shared/eviction/facts.ts';
import type { PodRef } from '#shared/eviction/identity.ts';
import { type ClusterName, type NodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { DeletePreconditions, LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import { type LiveTaint, NODE_UNREACHABLE, type Toleration } from '#shared/taints/taint.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { Chronicle, type Happening } from './chronicle.ts';
import type { NodeLeases } from './node-leases.ts';
import type { Sent } from './simulated-api.ts';
import type { SimulationClock } from './simulation-clock.ts';
import type { Truth } from './truth.ts';

/** The properties of a new pod. */
export interface PodSpec extends PodRef {
  /** The value of the pod's label and annotation `app`, and its priority class. */
  readonly app: string;
  readonly owner?: Owner;
  readonly node: NodeName;
  readonly tolerations: readonly Toleration[];
  /** The time that the pod takes to end once it is deleted. */
  readonly graceMs: number;
}

/** Receives the events of a cluster, and the service's actions there. */
export interface Witness {
  node(name: NodeName, taints: readonly LiveTaint[] | undefined): void;
  pod(pod: LivePod): void;
  mark(pod: LivePod, sent: Sent): void;
  /** A disruption budget blocks a pod's eviction. */
  blocked(pod: PodUid): void;
  deletion(pod: LivePod, meant: PodUid, sent: Sent): void;
}

/** A cluster that notes its events. Deleted pods take their grace period to end. */
export class LiveCluster extends FakeCluster {
  readonly name: ClusterName;
  readonly truth: Truth;
  readonly nodeChronicle = new Chronicle<LiveNode>(({ name }) => name);
  /** The Leases of its nodes, if its control plane has a stale view; absent: no process reads any. */
  readonly leases: NodeLeases | undefined;
  readonly podChronicle = new Chronicle<LivePod>(({ uid }) => uid);
  /** Called when a pod is removed. */
  onGone: (spec: PodSpec) => void = () => undefined;
  /** Called when the service has marked a pod. */
  onMarked: (pod: LivePod) => void = () => undefined;
  /** The most pods that existed at the same time. */
  mostPods = 0;
  /** The number of budgets that were added or removed. */
  budgetChanges = 0;
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

  /** The version of the last change. */
  get version(): string {
    return this.#version;
  }

  #note<T extends LiveNode | LivePod>(chronicle: Chronicle<T>, happening: Omit<Happening<T>, 'at'>): void {
    this.#version = happening.object.resourceVersion;
    chronicle.add({ ...happening, at: this.#clock.now() });
  }

  /** `by`: the writer of the list. The server records the writer, and the time in seconds. */
  setNode(name: NodeName, taints: readonly LiveTaint[], manager: string): void {
    const at = this.#clock.now();
    const second = new Date(Math.floor(at / 1000) * 1000).toISOString();
    const taintsStamp = `${manager}@${second}`;
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

  /** Forgets the taints of a deleted node once all of its pods are deleted or terminating. */
  #desert(name: NodeName | undefined): void {
    const staying = [...this.livePods.values()].some((pod) => pod.node === name && !pod.terminating);
    if (name !== undefined && !staying && !this.liveNodes.has(name)) {
      this.truth.nodeIsDeserted(this.#clock.now(), name);
    }
  }

  createPod(spec: PodSpec): void {
    this.#created += 1;
    const { namespace, name, app, owner, node, tolerations } = spec;
    const uid = podUid(`${this.name}.${name}.${this.#created}`);
    const podSince = Math.floor(this.#clock.now() / 1000) * 1000;
    this.#specs.set(uid, spec);
    const about = {
      namespace,
      name,
      labels: { app },
      annotations: { app },
      priorityClassName: app,
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

  /** A client other than the service deletes a pod. */
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

  /** Marks a pod as {@link markDisrupted} does; `sent` describes the request. */
  async markDisruptedAs(pod: PodRef, uid: PodUid, sent: Sent): Promise<LivePod> {
    const marked = await this.markDisrupted(pod, uid, sent.sentAt);
    this.#witness.mark(marked, sent);
    this.#note(this.podChronicle, { kind: 'upsert', object: marked });
    this.onMarked(marked);
    return marked;
  }

  /** Deletes a pod as {@link deletePod} does; `sent` describes the request. */
  async deletePodAs(pod: PodRef, preconditions: DeletePreconditions, sent: Sent): Promise<void> {
    const found = this.find(pod, preconditions);
    this.#witness.deletion(found, preconditions.uid, sent);
    this.terminate(found);
  }

  /** Evicts a pod as {@link evictPod} does. */
  async evictPodAs(pod: PodRef, preconditions: DeletePreconditions, sent: Sent): Promise<EvictionAnswer> {
    const found = this.find(pod, preconditions);
    const answer = this.budgetAnswer(found);
    if (answer.kind === 'evicted') await this.deletePodAs(pod, preconditions, { ...sent, means: 'evict' });
    else this.#witness.blocked(found.uid);
    return answer;
  }

  /** `budget`: absent: it is removed. */
  setBudget(name: string, budget?: { readonly app: string; allowed: number }): void {
    this.budgetChanges += 1;
    if (budget) this.budgets.set(name, budget);
    else this.budgets.delete(name);
  }

  #change(changed: Omit<LivePod, 'resourceVersion'>): void {
    const pod = this.putPod(changed);
    this.truth.podIs(this.#clock.now(), pod);
    this.#witness.pod(pod);
    this.#note(this.podChronicle, { kind: 'upsert', object: pod });
  }
}

/** Returns the zone of a node; each zone has half of the nodes. */
export const zoneOf = (node: NodeName): string => (Number(node.slice(1)) % 2 === 0 ? 'b' : 'a');
