import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A pod may take so much longer than its grace period. */
const PATIENCE_MS = 60_000;

type Leaving = Omit<StuckPod, 'nodeState'>;

/**
 * Pods that were evicted, by us or by another taint manager, and terminate still. A delete that is accepted is no pod that is
 * gone: they are followed until they are, also when their node has lost its taints by then.
 */
export class TerminatingPods {
  /** A node that is there without pods is awaited: its list tells. */
  readonly #nodes = new Map<NodeName, Map<PodUid, Leaving>>();

  /** Those that are gone, and were not {@link takeGone taken} yet. */
  #gone: PodUid[] = [];

  /** Whether a node's pods are to be followed for those that leave it. */
  has(node: NodeName): boolean {
    return this.#nodes.has(node);
  }

  /** All of them. */
  *pods(): Generator<Leaving> {
    for (const pods of this.#nodes.values()) yield* pods.values();
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
    const there = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#nodes.get(node)?.keys() ?? []) if (!there.has(uid)) this.#gone.push(uid);
    this.#nodes.delete(node);
    for (const pod of pods) if (pod.node === node) this.see(pod);
  }

  see({ uid, node, namespace, name, disrupted, evicted, leaving }: LivePod): void {
    if (!node || !leaving || !(disrupted || evicted)) return;
    const pods = this.#nodes.get(node) ?? new Map<PodUid, Leaving>();
    pods.set(uid, { node, uid, namespace, name, ...leaving });
    this.#nodes.set(node, pods);
  }

  /** It is gone. One without a grace period is so at once, and is not seen to leave. */
  lose({ uid, node, disrupted, evicted }: LivePod): void {
    const pods = node && this.#nodes.get(node);
    const left = pods?.delete(uid) ?? false;
    if (left && pods?.size === 0) this.#nodes.delete(node as NodeName);
    if (left || disrupted || evicted) this.#gone.push(uid);
  }

  /** Evicted pods that are gone since this was last called. */
  takeGone(): readonly PodUid[] {
    const gone = this.#gone;
    this.#gone = [];
    return gone;
  }

  /** Those that take too long, the longest first. */
  stuck(now: EpochMs): readonly Leaving[] {
    return [...this.#nodes.values()]
      .flatMap((pods) => [...pods.values()])
      .filter(({ overAt }) => now - overAt > PATIENCE_MS)
      .sort((a, b) => a.overAt - b.overAt);
  }
}
