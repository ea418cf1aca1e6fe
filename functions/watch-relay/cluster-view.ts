import { isDeepStrictEqual } from 'node:util';
import type {
  NodeDelta,
  NodeFacts,
  PodDelta,
  PodFacts,
  PodGoneDelta,
  SeenTaint,
  Version,
} from '#shared/eviction/facts.ts';
import type { ClusterName, EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { isDoubtful } from '#shared/eviction/node-state.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { TaintedNode } from '#shared/store/store.ts';
import { countdownIdentity } from '#shared/taints/deadline.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';

/** Kubernetes cuts times to the second, so a binding may be up to this much later than it says. */
const TRUNCATED_MS = 999;

/** What there is something to tell of: a node with all its pods or, with a UID, one pod that is or was there. */
export interface Subject {
  readonly node: NodeName;
  readonly uid?: PodUid;
}

interface NodeEntry {
  readonly taints: readonly SeenTaint[];
  /** See `LiveNode`; of a tainted node only. */
  readonly taintsStamp?: string;
  /** When it went; absent = it is there. */
  readonly deletedAt?: EpochMs;
}

type PodEntry = PodFacts & { readonly node: NodeName };

const UNTAINTED: NodeEntry = { taints: [] };

/**
 * What the relay knows of one cluster. No I/O: events in, and out comes of what there is something to tell. What is
 * told is asked for when it is sent, and is the truth of that moment. There is nothing to tell of nodes without a
 * NoExecute taint.
 *
 * Nor is there before both lists are in, because a node delta speaks of all pods of its node. Node and pod events
 * come from two watches in no common order; whichever comes second meets the other's state.
 */
export class ClusterView {
  readonly #cluster: ClusterName;
  readonly #epoch: number;
  #sequence = 0;
  readonly #nodes = new Map<NodeName, NodeEntry>();
  readonly #pods = new Map<PodUid, PodEntry>();
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
    return { nodes: this.#nodes.size, tainted: this.#tainted().length, pods: this.#pods.size };
  }

  /** A complete list of nodes: what is not in it is gone. */
  replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Subject[] {
    const present = new Set(nodes.map(({ name }) => name));
    const missing = [...this.#nodes.keys()].filter((name) => !present.has(name));
    const subjects = [
      ...missing.flatMap((name) => this.deleteNode(name, now)),
      ...nodes.flatMap((node) => this.upsertNode(node, now)),
    ];
    this.#listed.add('nodes');
    return subjects;
  }

  /** A complete list of pods: what is not in it is gone. */
  replacePods(pods: readonly LivePod[], now: EpochMs): readonly Subject[] {
    const present = new Set(pods.map(({ uid }) => uid));
    // Those that came first: the last pod that goes takes the memory of a deleted node along.
    const come = pods.flatMap((pod) => this.upsertPod(pod, now));
    const missing = [...this.#pods.keys()].filter((uid) => !present.has(uid));
    const subjects = [...come, ...missing.flatMap((uid) => this.#removePod(uid))];
    this.#listed.add('pods');
    return subjects;
  }

  upsertNode(node: LiveNode, now: EpochMs): readonly Subject[] {
    const known = this.#nodes.get(node.name);
    const before = known ?? UNTAINTED;
    const taints = seeTaints(node, known, now);
    const { taintsStamp } = node;
    // Also when the taints were written anew as they were: what is to be evicted waits to hear of that.
    const entry = { taints, ...(taintsStamp && taints.length > 0 ? { taintsStamp } : {}) };
    const { deletedAt, ...facts } = before;
    const stayed = deletedAt === undefined || taints.length === 0;
    this.#nodes.set(node.name, entry);
    return stayed && isDeepStrictEqual(entry, facts) ? [] : this.#tell({ node: node.name });
  }

  /** A deleted node is remembered for as long as it has pods: its last known taints stand for them. */
  deleteNode(name: NodeName, now: EpochMs): readonly Subject[] {
    const before = this.#nodes.get(name);
    if (!before || before.deletedAt !== undefined) return [];
    if (this.#uidsByNode.has(name)) this.#nodes.set(name, { ...before, deletedAt: now });
    else this.#nodes.delete(name);
    return before.taints.length > 0 ? this.#tell({ node: name }) : [];
  }

  upsertPod(pod: LivePod, now: EpochMs): readonly Subject[] {
    if (pod.terminating) return this.deletePod(pod);
    if (!pod.node) return [];
    const { uid, namespace, name, node, owner, tolerations } = pod;
    const predecessor = this.#uidByName.get(nameKey(pod));
    const replaced = predecessor && predecessor !== uid ? this.#removePod(predecessor) : [];
    const before = this.#pods.get(uid);
    if (before && sameTolerations(before, pod)) return replaced;
    const podSince = before?.podSince ?? Math.max(pod.podSince, Math.min(now, pod.podSince + TRUNCATED_MS));
    const who = { uid, namespace, name, node, ...(owner ? { owner } : {}) };
    this.#pods.set(uid, { ...who, tolerations, podSince });
    this.#uidByName.set(nameKey(pod), uid);
    uidsOf(this.#uidsByNode, node).add(uid);
    return this.#isTainted(node) ? [...replaced, ...this.#tell({ node, uid })] : replaced;
  }

  /**
   * A pod that is gone or going. There is nothing to tell of one that a taint manager evicted: whoever evicts it
   * records that himself, so half of an eviction's traffic is saved.
   */
  deletePod(pod: LivePod): readonly Subject[] {
    return this.#removePod(pod.uid, pod.disrupted);
  }

  /**
   * Everything tainted once more, and what only the store still holds as tainted. To be told after a gap and at every
   * resync, so that whatever was missed heals.
   */
  resync(stored: readonly TaintedNode[], now: EpochMs): readonly Subject[] {
    if (!this.synced) return [];
    for (const { node, state } of stored) {
      if (this.#nodes.has(node) || !this.#uidsByNode.has(node)) continue;
      // A node that went unseen keeps its stored taints for as long as it has pods, but for those it may have lost before.
      const { deletedAt = now } = state;
      const taints = state.taints
        .filter((taint) => !isDoubtful(state, taint))
        .map(({ since, ...taint }) => ({ ...taint, known: 'found', seenAt: since }) as const);
      this.#nodes.set(node, { taints, deletedAt });
    }
    const names = new Set([...this.#tainted(), ...stored.map(({ node }) => node)]);
    return [...names].map((node) => ({ node }));
  }

  /** What is known of a node and all its pods. `wake`: what is overdue there is to be looked at at once. */
  nodeDelta(name: NodeName, now: EpochMs, wake: boolean): NodeDelta {
    const facts = this.#facts(name, now);
    const cut = decidingTolerations(facts.taints);
    const pods = [...(this.#uidsByNode.get(name) ?? [])].flatMap((uid) => {
      const pod = this.#pods.get(uid);
      return pod ? [factsOf(pod, cut)] : [];
    });
    return { kind: 'node', ...facts, pods, wake };
  }

  /** What is known of a pod of a node: how it is, or that it is gone. */
  podDelta(node: NodeName, uid: PodUid, now: EpochMs): PodDelta | PodGoneDelta {
    const facts = this.#facts(node, now);
    const pod = this.#pods.get(uid);
    return pod
      ? { kind: 'pod', ...facts, pod: factsOf(pod, decidingTolerations(facts.taints)) }
      : { kind: 'pod-gone', ...facts, uid };
  }

  #tell(subject: Subject): readonly Subject[] {
    return this.synced ? [subject] : [];
  }

  #removePod(uid: PodUid, silently = false): readonly Subject[] {
    const pod = this.#pods.get(uid);
    if (!pod) return [];
    this.#pods.delete(uid);
    if (this.#uidByName.get(nameKey(pod)) === uid) this.#uidByName.delete(nameKey(pod));
    const { node } = pod;
    const tainted = this.#isTainted(node);
    const uids = uidsOf(this.#uidsByNode, node);
    uids.delete(uid);
    if (uids.size === 0) {
      this.#uidsByNode.delete(node);
      // The last pod of a deleted node takes its taints along.
      if (this.#nodes.get(node)?.deletedAt !== undefined) {
        this.#nodes.delete(node);
        return tainted ? this.#tell({ node }) : [];
      }
    }
    return tainted && !silently ? this.#tell({ node, uid }) : [];
  }

  #isTainted(node: NodeName): boolean {
    return (this.#nodes.get(node) ?? UNTAINTED).taints.length > 0;
  }

  #tainted(): readonly NodeName[] {
    return [...this.#nodes].filter(([, { taints }]) => taints.length > 0).map(([name]) => name);
  }

  #facts(node: NodeName, now: EpochMs): NodeFacts {
    this.#sequence += 1;
    const version: Version = { epoch: this.#epoch, sequence: this.#sequence };
    return { ref: { cluster: this.#cluster, node }, version, observedAt: now, ...this.#entry(node, now) };
  }

  #entry(node: NodeName, now: EpochMs): NodeEntry {
    const known = this.#nodes.get(node);
    if (known && known.taints.length > 0) return known;
    // Of a node that went untainted, its going is not told: a deleted node without taints is one whose taints nobody saw.
    return known || this.#uidsByNode.has(node) ? UNTAINTED : { taints: [], deletedAt: now };
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
function factsOf({ node: _node, ...facts }: PodEntry, cut: ReturnType<typeof decidingTolerations>): PodFacts {
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
