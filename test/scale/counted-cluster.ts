import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { DeletePreconditions, LiveNode, LivePod, PodEvent, PodRef } from '#shared/kubernetes/api.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import { pause } from '#shared/time/pause.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

/** How long an API server takes to answer: the step in which driven time passes. */
const ANSWER_MS = 50;

/** As the node controller taints what it does not hear from; every pod tolerates it for a while (DefaultTolerationSeconds). */
const TAINT = 'node.kubernetes.io/unreachable';

export interface Shape {
  readonly nodes: number;
  readonly pods: number;
  readonly tolerationSeconds: number;
}

/** A cluster whose objects are named as real ones are, and whose server takes its time; what `evict` asks of it is counted. */
export class CountedCluster extends FakeCluster {
  readonly nodeNames: readonly NodeName[];
  #requests = 0;

  constructor(index: number, { nodes, pods, tolerationSeconds }: Shape) {
    super({ now: Date.now });
    this.nodeNames = Array.from({ length: nodes }, (_, node) =>
      nodeName(`ip-10-${index}-${Math.floor(node / 250)}-${node % 250}.eu-west-1.compute.internal`),
    );
    for (const [node, name] of this.nodeNames.entries()) {
      this.#putNode(name, false);
      for (let pod = 0; pod < pods; pod++) this.#putPod(name, [index, node, pod], tolerationSeconds);
    }
  }

  /** Requests of `evict` so far. */
  get requests(): number {
    return this.#requests;
  }

  /** Taints all nodes, or frees them of it. */
  setTainted(tainted: boolean): void {
    for (const name of this.nodeNames) this.#putNode(name, tainted);
  }

  override async getNode(name: NodeName): Promise<LiveNode | undefined> {
    await this.#answers();
    return super.getNode(name);
  }

  override async podsOnNode(node: NodeName): Promise<readonly LivePod[]> {
    await this.#answers();
    return super.podsOnNode(node);
  }

  override async markDisrupted(
    pod: PodRef,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod> {
    await this.#answers();
    return super.markDisrupted(pod, uid, now, allowed);
  }

  override async deletePod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<void> {
    await this.#answers();
    return super.deletePod(pod, preconditions, notAfter);
  }

  override async createEvent(event: PodEvent): Promise<void> {
    await this.#answers();
    return super.createEvent(event);
  }

  async #answers(): Promise<void> {
    this.#requests += 1;
    await pause(ANSWER_MS);
  }

  #putNode(name: NodeName, tainted: boolean): void {
    this.putNode({ name, zone: 'eu-west-1a', taints: tainted ? [{ key: TAINT, effect: 'NoExecute' }] : [] });
  }

  #putPod(node: NodeName, place: readonly number[], tolerationSeconds: number): void {
    const hex = place.map((each) => each.toString(16).padStart(4, '0')).join('');
    this.putPod({
      uid: podUid(`${hex.slice(0, 8)}-${hex.slice(8, 12)}-4000-8000-000000000000`),
      namespace: 'production',
      name: `checkout-service-6d4cf56db6-${hex.slice(-5)}`,
      owner: { kind: 'ReplicaSet', name: 'checkout-service-6d4cf56db6' },
      node,
      tolerations: [TAINT, 'node.kubernetes.io/not-ready'].map(
        (key): Toleration => ({
          ...{ key, operator: 'Exists', effect: 'NoExecute' },
          tolerationSeconds: BigInt(tolerationSeconds),
        }),
      ),
      podSince: Date.now() - 3_600_000,
      terminating: false,
      disrupted: false,
    });
  }
}
