import { isDeepStrictEqual } from 'node:util';
import type { Delta, NodeDelta, NodeFacts, PodFacts, SeenTaint } from '#shared/eviction/facts.ts';
import type { ClusterName, EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Version } from '#shared/eviction/version.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { TaintedNode } from '#shared/store/store.ts';
import { countdownIdentity } from '#shared/taints/deadline.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';

/** Kubernetes cuts times to the second, so a binding may be up to this much later than it says. */
const TRUNCATED_MS = 999;

interface NodeEntry {
  readonly taints: readonly SeenTaint[];
  /** When it went; absent = it is there. */
  readonly deletedAt?: EpochMs;
}

const UNTAINTED: NodeEntry = { taints: [] };

/**
 * What the relay knows of one cluster, and which deltas follow from what it hears. No I/O: events in, deltas
 * out, in the order in which they are to be sent. Nothing follows from nodes without a NoExecute taint.
 *
 * Nothing is emitted before both lists are in, because a node delta speaks of all pods of its node. Node and
 * pod events come from two watches in no common order; whichever comes second meets the other's state.
 */
export class ClusterView {
  readonly #cluster: ClusterName;
  readonly #epoch: number;
  #sequence = 0;
  readonly #nodes = new Map<NodeName, NodeEntry>();
  readonly #pods = new Map<PodUid, PodFacts & { readonly node: NodeName }>();
  readonly #uidByName = new Map<string, PodUid>();
  readonly #uidsByNode = new Map<NodeName, Set<PodUid>>();
  readonly #listed = new Set<'nodes' | 'pods'>();

  /** `epoch` is the lease's: all deltas of a later view are newer. */
  constructor(cluster: ClusterName, epoch: number) {
    this.#cluster = cluster;
    this.#epoch = epoch;
  }

  /** Whether both lists are in, so that deltas may be sent. */
  get synced(): boolean {
    return this.#listed.size === 2;
  }

  get counts(): { readonly nodes: number; readonly tainted: number; readonly pods: number } {
    const tainted = [...this.#nodes.values()].filter(({ taints }) => taints.length > 0).length;
    return { nodes: this.#nodes.size, tainted, pods: this.#pods.size };
  }

  /** A complete list of nodes: what is not in it is gone. */
  replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Delta[] {
    const present = new Set(nodes.map(({ name }) => name));
    const missing = [...this.#nodes.keys()].filter((name) => !present.has(name));
    const deltas = [
      ...missing.flatMap((name) => this.deleteNode(name, now)),
      ...nodes.flatMap((node) => this.upsertNode(node, now)),
    ];
    this.#listed.add('nodes');
    return deltas;
  }

  /** A complete list of pods: what is not in it is gone. */
  replacePods(pods: readonly LivePod[], now: EpochMs): readonly Delta[] {
    const present = new Set(pods.map(({ uid }) => uid));
    const missing = [...this.#pods.keys()].filter((uid) => !present.has(uid));
    const deltas = [
      ...missing.flatMap((uid) => this.#removePod(uid, now)),
      ...pods.flatMap((pod) => this.upsertPod(pod, now)),
    ];
    this.#listed.add('pods');
    return deltas;
  }

  upsertNode(node: LiveNode, now: EpochMs): readonly Delta[] {
    const known = this.#nodes.get(node.name);
    const before = known ?? UNTAINTED;
    const taints = seeTaints(node, known, now);
    if (before.deletedAt === undefined && isDeepStrictEqual(taints, before.taints)) {
      this.#nodes.set(node.name, before);
      return [];
    }
    this.#nodes.set(node.name, { taints });
    return this.#emit(() => this.#nodeDelta(node.name, now));
  }

  /** A deleted node's last known taints stand as long as it has pods. */
  deleteNode(name: NodeName, now: EpochMs): readonly Delta[] {
    const before = this.#nodes.get(name);
    if (!before || before.deletedAt !== undefined) return [];
    if (before.taints.length === 0) {
      this.#nodes.delete(name);
      return [];
    }
    this.#nodes.set(name, { ...before, deletedAt: now });
    const deltas = this.#emit(() => this.#nodeDelta(name, now));
    this.#forgetDeserted(name);
    return deltas;
  }

  upsertPod(pod: LivePod, now: EpochMs): readonly Delta[] {
    if (pod.terminating) return this.deletePod(pod, now);
    if (!pod.node) return [];
    const { uid, namespace, name, node, tolerations } = pod;
    const predecessor = this.#uidByName.get(nameKey(pod));
    const replaced = predecessor && predecessor !== uid ? this.#removePod(predecessor, now) : [];
    const before = this.#pods.get(uid);
    if (before && sameTolerations(before, pod)) return replaced;
    const podSince = before?.podSince ?? Math.max(pod.boundAt, Math.min(now, pod.boundAt + TRUNCATED_MS));
    this.#pods.set(uid, { uid, namespace, name, node, tolerations, podSince });
    this.#uidByName.set(nameKey(pod), uid);
    uidsOf(this.#uidsByNode, node).add(uid);
    return [...replaced, ...this.#podDelta(uid, node, now)];
  }

  /**
   * A pod that is gone or going. Nothing is sent for one that a taint manager evicted: whoever evicts it
   * records that himself, so half of an eviction's traffic is saved.
   */
  deletePod(pod: LivePod, now: EpochMs): readonly Delta[] {
    return this.#removePod(pod.uid, now, pod.disrupted);
  }

  /**
   * Everything tainted once more, and what only the store still holds as tainted. Sent after a gap (`wake`: what is
   * overdue is to be looked at at once) and at every resync, so that whatever was missed heals.
   */
  resync(stored: readonly TaintedNode[], now: EpochMs, wake: boolean): readonly Delta[] {
    if (!this.synced) return [];
    const tainted = [...this.#nodes].filter(([, { taints }]) => taints.length > 0).map(([name]) => name);
    const known = new Set(tainted);
    const forgotten = stored.filter(({ node }) => !known.has(node));
    for (const { node, state } of forgotten) {
      // A node that went unseen keeps its stored taints for as long as it has pods.
      const { deletedAt = now } = state;
      const taints = state.taints.map(
        ({ since, ...taint }) => ({ ...taint, known: 'found', seenAt: since }) as const,
      );
      if (!this.#nodes.has(node)) this.#nodes.set(node, { taints, deletedAt });
    }
    const names = [...tainted, ...forgotten.map(({ node }) => node)];
    const deltas = names.map((name) => this.#nodeDelta(name, now, wake));
    for (const { node } of forgotten) this.#forgetDeserted(node);
    return deltas;
  }

  #emit(delta: () => Delta): readonly Delta[] {
    return this.synced ? [delta()] : [];
  }

  #podDelta(uid: PodUid, node: NodeName, now: EpochMs): readonly Delta[] {
    const pod = this.#pods.get(uid);
    if (!pod || !this.#isTainted(node)) return [];
    return this.#emit(() => {
      const facts = this.#facts(node, now);
      return { kind: 'pod', ...facts, pod: told(pod, decidingTolerations(facts.taints)) };
    });
  }

  #removePod(uid: PodUid, now: EpochMs, silently = false): readonly Delta[] {
    const pod = this.#pods.get(uid);
    if (!pod) return [];
    this.#pods.delete(uid);
    if (this.#uidByName.get(nameKey(pod)) === uid) this.#uidByName.delete(nameKey(pod));
    const uids = uidsOf(this.#uidsByNode, pod.node);
    uids.delete(uid);
    if (uids.size === 0) this.#uidsByNode.delete(pod.node);
    const deltas =
      this.#isTainted(pod.node) && !silently
        ? this.#emit(() => ({ kind: 'pod-gone', ...this.#facts(pod.node, now), uid }))
        : [];
    return [...deltas, ...this.#buryDeserted(pod.node, now)];
  }

  /** The last pod of a deleted node takes its taints along. */
  #buryDeserted(node: NodeName, now: EpochMs): readonly Delta[] {
    if (!this.#isDeserted(node)) return [];
    const deltas = this.#emit(() => this.#nodeDelta(node, now));
    this.#nodes.delete(node);
    return deltas;
  }

  #forgetDeserted(node: NodeName): void {
    if (this.#isDeserted(node)) this.#nodes.delete(node);
  }

  #isDeserted(node: NodeName): boolean {
    return this.#nodes.get(node)?.deletedAt !== undefined && !this.#uidsByNode.has(node);
  }

  #isTainted(node: NodeName): boolean {
    return (this.#nodes.get(node) ?? UNTAINTED).taints.length > 0;
  }

  #nodeDelta(name: NodeName, now: EpochMs, wake = false): NodeDelta {
    const facts = this.#facts(name, now);
    const cut = decidingTolerations(facts.taints);
    const pods = [...(this.#uidsByNode.get(name) ?? [])].flatMap((uid) => {
      const pod = this.#pods.get(uid);
      return pod ? [told(pod, cut)] : [];
    });
    return { kind: 'node', ...facts, pods, wake };
  }

  #facts(node: NodeName, now: EpochMs): NodeFacts {
    const known = this.#nodes.get(node) ?? UNTAINTED;
    return { ref: { cluster: this.#cluster, node }, version: this.#nextVersion(), observedAt: now, ...known };
  }

  #nextVersion(): Version {
    this.#sequence += 1;
    return { epoch: this.#epoch, sequence: this.#sequence };
  }
}

/**
 * The NoExecute taints of a node, and how each one's countdown is known: as before while it stands, and else it
 * appeared on a node that was known without it, or was found on one that was not known.
 */
function seeTaints(node: LiveNode, before: NodeEntry | undefined, now: EpochMs): readonly SeenTaint[] {
  const seen = new Map(before?.taints.map((taint) => [countdownIdentity(taint), taint]));
  return node.taints
    .filter(({ effect }) => effect === 'NoExecute')
    .map(({ key, value, effect, timeAdded }) => {
      const stood = seen.get(countdownIdentity({ key, effect }));
      return {
        key,
        ...(value ? { value } : {}),
        effect,
        ...(timeAdded === undefined ? {} : { timeAdded }),
        known: stood?.known ?? (before ? 'appeared' : 'found'),
        seenAt: stood?.seenAt ?? now,
      };
    });
}

/** A pod as a delta tells of it: of its tolerations only those that decide. */
function told(
  { node: _node, ...facts }: PodFacts & { readonly node: NodeName },
  cut: ReturnType<typeof decidingTolerations>,
): PodFacts {
  return { ...facts, tolerations: cut(facts.tolerations) };
}

/** Lists are shared objects as a rule, so the comparison is by identity first. */
function sameTolerations(before: PodFacts, pod: LivePod): boolean {
  return before.tolerations === pod.tolerations || isDeepStrictEqual(before.tolerations, pod.tolerations);
}

const nameKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }) =>
  `${namespace}/${name}`;

function uidsOf(byNode: Map<NodeName, Set<PodUid>>, node: NodeName): Set<PodUid> {
  const known = byNode.get(node);
  if (known) return known;
  const uids = new Set<PodUid>();
  byNode.set(node, uids);
  return uids;
}
