import type { StuckPod } from '#shared/clusters/stuck.ts';
import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';

/** A pod may take so much longer than its grace period. */
const PATIENCE_MS = 60_000;

type Leaving = Omit<StuckPod, 'nodeState'>;

/**
 * Pods that were evicted, by us or by another taint manager, and terminate still. A delete that is accepted is no pod that is
 * gone: they are followed until they are, also when their node has lost its taints by then.
 */
export class LeavingPods {
  /** A node that is there without pods is awaited: its list tells. */
  readonly #nodes = new Map<NodeName, Map<PodUid, Leaving>>();

  /** Whether a node's pods are to be followed for those that leave it. */
  has(node: NodeName): boolean {
    return this.#nodes.has(node);
  }

  get nodes(): Iterable<NodeName> {
    return this.#nodes.keys();
  }

  /** Some may be leaving these nodes, by what was known before. */
  expect(nodes: Iterable<NodeName>): void {
    for (const node of nodes) if (!this.#nodes.has(node)) this.#nodes.set(node, new Map());
  }

  /** A complete list of a node's pods. */
  replace(node: NodeName, pods: readonly LivePod[]): void {
    this.#nodes.delete(node);
    for (const pod of pods) if (pod.node === node) this.see(pod);
  }

  see({ uid, node, namespace, name, disrupted, evicted, leaving }: LivePod): void {
    if (!node || !leaving || !(disrupted || evicted)) return;
    const pods = this.#nodes.get(node) ?? new Map<PodUid, Leaving>();
    pods.set(uid, { node, uid, namespace, name, ...leaving });
    this.#nodes.set(node, pods);
  }

  /** It is gone. */
  lose({ uid, node }: LivePod): void {
    const pods = node && this.#nodes.get(node);
    if (pods?.delete(uid) && pods.size === 0) this.#nodes.delete(node as NodeName);
  }

  /** Those that take too long, the longest first. */
  stuck(now: EpochMs): readonly Leaving[] {
    return [...this.#nodes.values()]
      .flatMap((pods) => [...pods.values()])
      .filter(({ overAt }) => now - overAt > PATIENCE_MS)
      .sort((a, b) => a.overAt - b.overAt);
  }
}
