import { isDeepStrictEqual } from 'node:util';
import type { ClusterView, Subject } from '#shared/engine/watch/cluster-view.ts';
import type { PodFacts } from '#shared/eviction/facts.ts';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';

/** The actual state of a cluster. */
export interface Actual {
  readonly nodes: readonly LiveNode[];
  readonly pods: readonly LivePod[];
  /** The active watches of pods: the node of each; undefined: all nodes. */
  readonly podWatches: readonly (NodeName | undefined)[];
}

interface Replicated {
  readonly keys: readonly string[];
  readonly pods: Map<string, Known>;
}

/** The facts of a pod that a delta must contain. */
type Known = Pick<PodFacts, 'namespace' | 'name' | 'tolerations'>;

/**
 * Applies the deltas of a relay's view of a cluster, as if sent immediately, and compares the result with the cluster.
 */
export class DeltaReplica {
  readonly #view: ClusterView;
  readonly #replica = new Map<NodeName, Replicated>();

  constructor(view: ClusterView) {
    this.#view = view;
  }

  apply(subjects: readonly Subject[]): void {
    for (const { node, uid, gone = false } of subjects) {
      if (uid === undefined) {
        this.#applyNode(node);
        continue;
      }
      const delta = this.#view.podDelta({ node, uid, gone }, Date.now());
      const replica = this.#replica.get(node);
      if (!delta || !replica) continue;
      if (delta.kind === 'pod') replica.pods.set(uid, known(delta.pod));
      else replica.pods.delete(uid);
    }
  }

  /** Returns the errors in the view and in its deltas for a quiet cluster, one sentence each. */
  faults({ nodes, pods, podWatches }: Actual): readonly string[] {
    const faults: string[] = [];
    const live = new Map(nodes.map((node) => [node.name, node]));
    for (const node of nodes) if (evicting(node).length > 0) faults.push(...this.#nodeFaults(node, pods));
    for (const name of this.#view.followed()) {
      const node = live.get(name);
      if (node && evicting(node).length === 0) faults.push(`${name} has no taint and is followed`);
      // A deleted node is followed until it has no pods.
      if (!node) faults.push(...this.#podFaults(name, pods));
    }
    for (const name of this.#replica.keys()) {
      if (!this.#view.follows(name)) faults.push(`no delta reported that ${name} has no taint any more`);
    }
    if (new Set(podWatches).size < podWatches.length) faults.push('pods are watched twice');
    for (const name of podWatches) {
      if (name && !this.#view.follows(name)) faults.push(`the pods of ${name} are still watched`);
    }
    return faults;
  }

  #applyNode(node: NodeName): void {
    if (!this.#view.isComplete(node)) return;
    const { taints, pods } = this.#view.nodeDelta(node, Date.now(), false);
    if (taints.length === 0) this.#replica.delete(node);
    else {
      const keys = taints.map(({ key }) => key);
      this.#replica.set(node, { keys, pods: new Map(pods.map((pod) => [pod.uid, known(pod)])) });
    }
  }

  #nodeFaults(node: LiveNode, pods: readonly LivePod[]): readonly string[] {
    const { name } = node;
    if (!this.#view.follows(name)) return [`${name} is not followed`];
    if (!this.#view.isComplete(name)) return [`the pods of ${name} are not listed`];
    const keys = evicting(node).map(({ key }) => key);
    const seen = this.#view.nodeDelta(name, 0, false).taints.map(({ key }) => key);
    return [
      ...(isDeepStrictEqual(seen, keys) ? [] : [`${name} has ${keys.join()}, but ${seen.join()} is known`]),
      ...this.#podFaults(name, pods),
    ];
  }

  #podFaults(node: NodeName, pods: readonly LivePod[]): readonly string[] {
    const truth = pods.filter((pod) => pod.node === node && !pod.terminating);
    const delta = this.#view.nodeDelta(node, 0, false);
    const keys = delta.taints.map(({ key }) => key);
    const cut = decidingTolerations(delta.taints);
    const actual = new Map(
      truth.map((pod) => [String(pod.uid), known({ ...pod, tolerations: cut(pod.tolerations) })]),
    );
    const seen = new Map(delta.pods.map((pod) => [String(pod.uid), known(pod)]));
    const replica = this.#replica.get(node);
    return [
      ...differences(actual, seen).map((difference) => `on ${node} ${difference} by the view`),
      ...(replica ? differences(actual, replica.pods) : ['nothing']).map(
        (difference) => `on ${node} ${difference} by the deltas`,
      ),
      ...(replica && !isDeepStrictEqual(replica.keys, keys)
        ? [`${node}'s taints were sent as ${replica.keys.join()}`]
        : []),
    ];
  }
}

const evicting = ({ taints }: LiveNode) => taints.filter(({ effect }) => effect === 'NoExecute');

const known = ({ namespace, name, tolerations }: Known): Known => ({ namespace, name, tolerations });

function differences(
  actual: ReadonlyMap<string, Known>,
  seen: ReadonlyMap<string, Known>,
): readonly string[] {
  const all = new Set([...actual.keys(), ...seen.keys()]);
  return [...all].flatMap((uid) => {
    const [actualPod, seenPod] = [actual.get(uid), seen.get(uid)];
    if (!seenPod) return [`${uid} is missed`];
    if (!actualPod) return [`${uid} is a phantom`];
    return isDeepStrictEqual(actualPod, seenPod) ? [] : [`${uid} is wrong`];
  });
}
