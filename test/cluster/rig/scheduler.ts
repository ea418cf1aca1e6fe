import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { TestCluster } from './test-cluster.ts';
import type { PodLife } from './witness.ts';

/** The name by which pods select this scheduler, so that a cluster's own scheduler leaves them alone. */
export const SUITE_SCHEDULER = 'taintward.dev/suite';
const ROUND_MS = 50;
/** Bindings under way at a time. */
const MAX_BINDING = 20;

/** Stands in for the scheduler: binds each pod to the node with the fewest pods that has no NoExecute taint. */
export class Scheduler {
  readonly #cluster: TestCluster;
  readonly #timer: NodeJS.Timeout;
  /** The nodes of pods whose binding is sent and not seen yet, by UID. */
  readonly #binding = new Map<string, string>();
  #failure: unknown;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#timer = setInterval(() => this.#bindAll(), ROUND_MS);
  }

  /** Throws when a pod could not be bound. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #bindAll(): void {
    const { pods, nodes } = this.#cluster.witness;
    const counts = new Map<string, number>();
    for (const [name, moments] of nodes) {
      const last = moments.at(-1);
      if (last && !last.deleted && last.taints.length === 0) counts.set(name, 0);
    }
    const count = (node: string) => counts.set(node, (counts.get(node) ?? Number.NaN) + 1);
    const waiting: PodLife[] = [];
    for (const pod of pods.values()) {
      if (pod.node !== '') this.#binding.delete(pod.uid);
      if (pod.evictedAt !== undefined) continue;
      const node = pod.node || this.#binding.get(pod.uid);
      if (node === undefined) waiting.push(pod);
      else if (counts.has(node)) count(node);
    }
    for (const pod of waiting.slice(0, Math.max(0, MAX_BINDING - this.#binding.size))) {
      const [emptiest] = [...counts].sort(([, a], [, b]) => a - b);
      if (!emptiest) return;
      count(emptiest[0]);
      void this.#bind(pod, emptiest[0]);
    }
  }

  async #bind({ uid, name }: PodLife, node: string): Promise<void> {
    this.#binding.set(uid, node);
    try {
      await this.#cluster.bindPod(name, node);
    } catch (error) {
      this.#binding.delete(uid);
      // The pod was deleted or is bound already, or the server was too busy to answer.
      if (!(error instanceof ApiError && [0, 404, 409, 429].includes(error.status))) this.#failure = error;
    }
  }
}
