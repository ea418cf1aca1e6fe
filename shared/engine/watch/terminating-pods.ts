import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import { STUCK_AFTER_MS, type StuckPod } from '#shared/eviction/stuck.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

type Leaving = Omit<StuckPod, 'nodeState'>;

/**
 * Evicted pods that still terminate: an accepted delete doesn't mean that a pod is gone. They are followed until
 * removed, even if their node loses its taints first.
 */
export class TerminatingPods {
  /** Terminating pods by node. A node without pods here is awaited: its list shows them. */
  readonly #nodes = new Map<NodeName, Map<PodUid, Leaving>>();

  /** Removed pods that were not {@link takeGone taken} yet. */
  #gone: PodUid[] = [];

  has(node: NodeName): boolean {
    return this.#nodes.has(node);
  }

  *pods(): Generator<Leaving> {
    for (const pods of this.#nodes.values()) yield* pods.values();
  }

  get nodes(): Iterable<NodeName> {
    return this.#nodes.keys();
  }

  /** Notes that pods may be terminating on these nodes, from earlier information. */
  expect(nodes: Iterable<NodeName>): void {
    for (const node of nodes) if (!this.#nodes.has(node)) this.#nodes.set(node, new Map());
  }

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

  /** Notes that a pod is gone. A pod without a grace period is removed immediately, and never seen terminating. */
  lose({ uid, node, disrupted, evicted }: LivePod): void {
    const pods = node && this.#nodes.get(node);
    const left = pods?.delete(uid) ?? false;
    if (left && pods?.size === 0) this.#nodes.delete(node as NodeName);
    if (left || disrupted || evicted) this.#gone.push(uid);
  }

  takeGone(): readonly PodUid[] {
    const gone = this.#gone;
    this.#gone = [];
    return gone;
  }

  stuck(now: EpochMs): readonly Leaving[] {
    return [...this.#nodes.values()]
      .flatMap((pods) => [...pods.values()])
      .filter(({ gracePeriodEndedAt }) => now - gracePeriodEndedAt > STUCK_AFTER_MS)
      .sort((a, b) => a.gracePeriodEndedAt - b.gracePeriodEndedAt);
  }
}
