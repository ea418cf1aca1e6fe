import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { defined } from '#shared/defined.ts';
import {
  begunBy,
  DELTA_MAX_AGE_MS,
  type DeletedPod,
  isAhead,
  latestOf,
  type NodeDelta,
  type NodeFacts,
  type PodDelta,
  type PodFacts,
  type PodGoneDelta,
  type SeenTaint,
  type Version,
} from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { isDoubtful } from '#shared/eviction/node-state.ts';
import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import { type HeldPod, releaseOrder } from '#shared/eviction/release-order.ts';
import type { DownNode } from '#shared/eviction/stalled.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { builtInDeadline } from '#shared/explain/built-in.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import { countdownsOf, setAgainSince } from '#shared/taints/deadline.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';
import { type LiveTaint, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { podRoom } from './memory-limits.ts';
import { NodeTally } from './node-tally.ts';
import { TerminatingPods } from './terminating-pods.ts';

/** The subject of a delta: a node with all its pods or, with a UID, one existing pod. */
export interface Subject {
  readonly node: NodeName;
  readonly uid?: PodUid;
  readonly gone?: boolean;
}

interface NodeEntry {
  readonly taints: readonly SeenTaint[];
  /** See `LiveNode`; only for tainted nodes. */
  readonly taintsStamp?: string;
  /** When the node was deleted; absent: it exists. */
  readonly deletedAt?: EpochMs;
  /** The taints come from the store. This view never saw the node with them. */
  readonly recalled?: true;
}

interface SeenPod extends PodFacts {
  /** Changes with the pod's labels and annotations, which themselves take ten times the memory. Absent: none. */
  readonly traitsMark?: string;
}

export interface ViewCounts {
  readonly nodes: number;
  readonly tainted: number;
  readonly pods: number;
}

const UNTAINTED: NodeEntry = { taints: [] };

/**
 * The relay's view of one cluster: all nodes, and the pods of nodes with an evicting taint. It does no I/O: events go
 * in, and subjects of deltas come out. A delta is made when it is sent, from the state at that time. Nodes without an
 * evicting taint produce no deltas.
 *
 * A node delta covers all pods of its node, so it waits for their list ({@link isComplete}). A node's loss of its taints can
 * be sent immediately. Node and pod events arrive on separate watches in no common order; the later event is merged
 * with the state from the earlier one.
 */
export class ClusterView {
  /** Keys whose NoSchedule taints are read as NoExecute. When the keys change, the nodes must be listed again. */
  treatAsNoExecute: readonly string[] = [];
  /** When the API server answered a list, or first answered after an outage. */
  answeredAt = 0;
  /**
   * The latest time that any clock may show at our `now`. It stamps observations, so that no countdown starts too
   * early.
   */
  latest: (now: EpochMs) => EpochMs = (now) => now;
  /** The guard's counts. Between calls, they cover all nodes, never part of a list. */
  readonly tally: NodeTally;
  readonly #cluster: ClusterName;
  readonly #epoch: number;
  #sequence = 0;
  #guardRevision: number | undefined;
  readonly #nodes = new Map<NodeName, NodeEntry>();
  /** Pods of nodes whose list is complete. */
  readonly #pods = new Map<NodeName, Map<PodUid, SeenPod>>();
  readonly leaving = new TerminatingPods();
  /** Pods of followed nodes that another process deleted, for as long as a delta that reports them counts. */
  readonly #deleted = new Map<NodeName, Map<PodUid, DeletedPod>>();
  /** Nodes that were deleted while untainted, and may have returned. The store may not reflect that yet. */
  readonly #wentUntainted = new Set<NodeName>();
  /** Nodes that were deleted and then lost their last pod. The store may not reflect that yet. */
  readonly #deserted = new Set<NodeName>();
  readonly #admit = podRoom(() => this.#keptPods());
  #listed = false;
  /** Ranks of pods that may have been held, as of the last wake. Others are ranked when their deltas are made. */
  readonly #ranks = new Map<PodUid, number>();
  /** The view includes the store's tainted nodes: from now on, a node that isn't here counts as absent before. */
  #recalled = false;

  /** `epoch` is the lease's: all deltas of a later view are newer. */
  constructor(cluster: ClusterName, epoch: number, clock?: Clock) {
    this.tally = new NodeTally(clock);
    this.#cluster = cluster;
    this.#epoch = epoch;
  }

  guardedBy(revision: number): void {
    this.#guardRevision = revision;
  }

  get listed(): boolean {
    return this.#listed;
  }

  get counts(): ViewCounts {
    return {
      nodes: this.#nodes.size,
      tainted: this.followed().length,
      pods: [...this.#pods.values()].reduce((sum, { size }) => sum + size, 0),
    };
  }

  get awaitsPods(): boolean {
    return this.#nodes.entries().some(([name, { taints }]) => taints.length > 0 && !this.#pods.has(name));
  }

  /** Nodes whose pods are followed: tainted nodes, and deleted ones that were tainted, until they have no pods. */
  followed(): readonly NodeName[] {
    return [...this.#nodes].filter(([, { taints }]) => taints.length > 0).map(([name]) => name);
  }

  downNodes(keys: readonly string[]): readonly DownNode[] {
    return [...this.#nodes]
      .filter(([, { taints }]) => taints.some(({ key }) => keys.includes(key)))
      .map(([node, { taints, deletedAt }]) => {
        const pods = this.#pods.get(node);
        return {
          node,
          taints,
          ...defined({ deletedAt }),
          ...(pods ? { pods: [...pods.values()] } : {}),
        };
      });
  }

  follows(node: NodeName): boolean {
    return (this.#nodes.get(node) ?? UNTAINTED).taints.length > 0;
  }

  taintsOf(name: NodeName): {
    readonly taints: readonly TimedTaint[];
    readonly zone: string | undefined;
    readonly downSince: EpochMs | undefined;
  } {
    const { taints } = this.#nodes.get(name) ?? UNTAINTED;
    return {
      taints: taints.map(({ seenAt, ...taint }) => ({ ...taint, since: seenAt })),
      ...this.tally.placeOf(name),
    };
  }

  /** Reports whether a node's pods are watched: the node is followed, or evicted pods still terminate on it. */
  watches(node: NodeName): boolean {
    return this.follows(node) || this.leaving.has(node);
  }

  watched(): readonly NodeName[] {
    return [...new Set([...this.followed(), ...this.leaving.nodes])];
  }

  /** Returns the evicted pods that still terminate long after their grace period; the longest first. */
  stuck(now: EpochMs): readonly StuckPod[] {
    return this.leaving.stuck(now).map((pod) => ({ ...pod, nodeState: this.#nodeState(pod.node) }));
  }

  #nodeState(node: NodeName): StuckPod['nodeState'] {
    const entry = this.#nodes.get(node);
    if (!entry || entry.deletedAt !== undefined) return 'gone';
    return entry.taints.some(({ key }) => key === NODE_UNREACHABLE) ? 'unreachable' : 'there';
  }

  isComplete(node: NodeName): boolean {
    return !this.follows(node) || this.#pods.has(node);
  }

  /** Replaces all nodes with a complete list. Nodes that are not in the list are deleted. */
  replaceNodes(nodes: readonly LiveNode[], now: EpochMs): readonly Subject[] {
    this.#listed = true;
    const present = new Set(nodes.map(({ name }) => name));
    const missing = [...this.#nodes.keys()].filter((name) => !present.has(name));
    const subjects = [
      ...missing.flatMap((name) => this.deleteNode(name, now)),
      ...nodes.flatMap((node) => this.#seeNode(node, now, true)),
    ];
    this.tally.listed();
    return subjects;
  }

  upsertNode(node: LiveNode, now: EpochMs): readonly Subject[] {
    return this.#seeNode(node, now, false);
  }

  #seeNode(node: LiveNode, now: EpochMs, listed: boolean): readonly Subject[] {
    const { name, taintsStamp } = node;
    const known = this.#nodes.get(name);
    const before = known ?? UNTAINTED;
    this.#deserted.delete(name);
    const taints = seeTaints(
      evictingTaints(node.taints, this.treatAsNoExecute),
      known,
      known !== undefined || this.#recalled,
      this.latest(now),
    );
    this.tally.saw(node, taints, before, { listed, now });
    if (taints.length === 0) {
      this.#nodes.set(name, UNTAINTED);
      this.#pods.delete(name);
      this.#deleted.delete(name);
      return before.taints.length > 0 ? [{ node: name }] : [];
    }
    // Report taints that were set again unchanged, too: their stamp differs, and evictions wait for a delta with the
    // new stamp.
    const entry = { taints, ...(taintsStamp ? { taintsStamp } : {}) };
    this.#nodes.set(name, entry);
    return isDeepStrictEqual(entry, before) ? [] : [{ node: name }];
  }

  /** Keeps a deleted node while it has pods: its last known taints still apply to them. */
  deleteNode(name: NodeName, now: EpochMs): readonly Subject[] {
    const before = this.#nodes.get(name);
    if (!before || before.deletedAt !== undefined) return [];
    this.tally.gone(name);
    if (before.taints.length === 0) {
      this.#nodes.delete(name);
      this.#wentUntainted.add(name);
      return [];
    }
    this.#nodes.set(name, { ...before, deletedAt: this.latest(now) });
    this.#forgetDeserted(name);
    return [{ node: name }];
  }

  /**
   * Replaces a followed node's pods with a complete list; nothing if unchanged. Throws `ApiError` if there is no room.
   */
  replacePods(node: NodeName, pods: readonly LivePod[], now: EpochMs): readonly Subject[] {
    this.#admit(pods);
    this.leaving.replace(node, pods);
    if (!this.follows(node)) return [];
    const before = this.#pods.get(node);
    const staying = pods.filter((pod) => !pod.terminating && pod.node === node);
    const seen = (pod: LivePod) => podFacts(pod, before?.get(pod.uid), this.latest(now));
    const known = new Map(staying.map((pod) => [pod.uid, seen(pod)]));
    this.#pods.set(node, known);
    for (const pod of pods) this.#noteDeleted(pod, seen(pod));
    return this.#forgetDeserted(node) || !isDeepStrictEqual(known, before) ? [{ node }] : [];
  }

  /** Adds or updates a pod; nothing if its node's pods aren't listed. Throws `ApiError` if there is no room. */
  upsertPod(pod: LivePod, now: EpochMs): readonly Subject[] {
    this.#admit([pod]);
    if (pod.terminating) {
      this.leaving.see(pod);
      return this.#lose(pod);
    }
    const { uid, node } = pod;
    const pods = node && this.#pods.get(node);
    if (!pods) return [];
    const before = pods.get(uid);
    const seen = podFacts(pod, before, this.latest(now));
    if (before && isSame(before, seen)) return [];
    pods.set(uid, seen);
    return [{ node, uid }];
  }

  /** Removes a pod; nothing if this service evicted it: the evictor records that, which saves half of the traffic. */
  deletePod(pod: LivePod): readonly Subject[] {
    this.leaving.lose(pod);
    return this.#lose(pod);
  }

  #lose(pod: LivePod): readonly Subject[] {
    const { uid, node, disrupted, deleted } = pod;
    const known = node && this.#pods.get(node)?.get(uid);
    if (!known) return [];
    this.#pods.get(node)?.delete(uid);
    this.#noteDeleted(pod, known);
    if (this.#forgetDeserted(node)) return [{ node }];
    return disrupted && !deleted ? [] : [{ node, uid, gone: true }];
  }

  #noteDeleted({ uid, node, deleted }: LivePod, known: PodFacts): void {
    if (!node || !deleted) return;
    const noted = this.#deleted.get(node) ?? new Map<PodUid, DeletedPod>();
    noted.set(uid, { ...known, deleted });
    this.#deleted.set(node, noted);
  }

  *#keptPods() {
    for (const pods of [...this.#pods.values(), ...this.#deleted.values()]) yield* pods.values();
    for (const pod of this.leaving.pods()) yield { ...pod, leaving: pod };
  }

  #deletedOf(node: NodeName, now: EpochMs): readonly DeletedPod[] {
    const noted = this.#deleted.get(node);
    for (const { uid, deleted } of noted?.values() ?? []) {
      // A deletion time in the future would never expire.
      if (isAhead(deleted.at, now) || now - deleted.at > DELTA_MAX_AGE_MS) noted?.delete(uid);
    }
    return [...(noted?.values() ?? [])];
  }

  /**
   * All tainted nodes, also those that only the store holds: sent after a gap and at every resync, to repair missed
   * events.
   */
  resync(stored: readonly TaintedNode[], now: EpochMs): readonly Subject[] {
    if (!this.#listed) return [];
    this.#recalled = true;
    for (const { node, state } of stored) {
      if ([this.#nodes, this.#wentUntainted, this.#deserted].some((known) => known.has(node))) continue;
      // A node that was deleted unseen keeps its stored taints while it has pods, except the taints that it may have
      // lost before.
      const latest = this.latest(now);
      const deletedAt = begunBy(state.deletedAt ?? latest, latest);
      const taints = state.taints
        .filter((taint) => !isDoubtful(state, taint))
        .map(
          ({ since, ...taint }) =>
            ({ ...taint, known: 'preexisting', seenAt: begunBy(since, latest) }) as const,
        );
      if (taints.length > 0) this.#nodes.set(node, { taints, deletedAt, recalled: true });
    }
    for (const node of this.#deleted.keys()) {
      if (this.#deletedOf(node, now).length === 0) this.#deleted.delete(node);
    }
    const names = new Set([...this.followed(), ...stored.map(({ node }) => node)]);
    for (const went of [this.#wentUntainted, this.#deserted]) {
      for (const node of went) if (!names.has(node)) went.delete(node);
    }
    return [...names].map((node) => ({ node }));
  }

  /**
   * Ranks all due pods for the wake that follows. `stored`: when countdowns began. Returns their nodes, in that order.
   */
  rank(stored: readonly TaintedNode[], rules: Rules, now: EpochMs): readonly NodeName[] {
    const states = new Map(stored.map(({ node, state }) => [node, state]));
    const due: (HeldPod & { readonly node: NodeName })[] = [];
    for (const [node, pods] of this.#pods) {
      const { taints, deletedAt } = this.#nodes.get(node) ?? UNTAINTED;
      const knownOf = countdownsOf(states.get(node)?.taints ?? []);
      const timed = taints.map(({ seenAt, ...taint }) => {
        const same = knownOf(taint);
        return { ...taint, since: same?.since ?? seenAt };
      });
      const deadlineOf = podDeadlines(timed, deletedAt, rules);
      for (const { uid, namespace, owner, tolerations, podSince } of pods.values()) {
        const deadline = deadlineOf(tolerations, podSince);
        if (deadline && deadline.at <= now) due.push({ node, uid, namespace, owner, dueAt: deadline.at });
      }
    }
    this.#ranks.clear();
    const nodeOf = new Map(due.map(({ uid, node }) => [uid, node]));
    const nodes = new Set<NodeName>();
    for (const uid of releaseOrder(due)) {
      this.#ranks.set(uid, this.#ranks.size);
      const node = nodeOf.get(uid);
      if (node) nodes.add(node);
    }
    return [...nodes];
  }

  /**
   * Reports whether a running built-in controller would have evicted a pod by `before`: nothing else shows in every
   * cluster that it isn't running. `Lt` and `Gt` always match here: a pod that may tolerate the taint is no evidence.
   */
  hasForgotten(before: EpochMs): boolean {
    const rules = { matching: { comparisonOperators: true } };
    return this.#pods.entries().some(([node, pods]) => {
      const { taints, deletedAt } = this.#nodes.get(node) ?? UNTAINTED;
      const timed = taints.map(({ seenAt, ...taint }) => ({ ...taint, since: seenAt }));
      const known = { taints: timed, ...defined({ deletedAt }) };
      return pods
        .values()
        .some((pod) => (builtInDeadline(known, pod, pod.podSince, rules) ?? Infinity) <= before);
    });
  }

  /** Returns the delta of a node with all its pods; requires {@link isComplete}. `wake`: overdue evictions are checked. */
  nodeDelta(name: NodeName, now: EpochMs, wake: boolean): NodeDelta {
    const facts = this.#facts(name, now);
    const cut = decidingTolerations(facts.taints);
    const pods = [...(this.#pods.get(name)?.values() ?? [])].map((pod) => {
      const sent = asSent(pod, cut);
      return wake ? { ...sent, rank: this.#rankOf(pod.uid) } : sent;
    });
    const deleted = this.#deletedOf(name, now).map((pod) => asSent(pod, cut));
    const answered = wake ? { answeredAt: this.answeredAt } : {};
    return { kind: 'node', ...facts, pods, ...(deleted.length > 0 ? { deleted } : {}), wake, ...answered };
  }

  /** Returns the delta of a pod: its state, or that it is gone. `undefined`: neither is known. */
  podDelta({ node, uid, gone }: Required<Subject>, now: EpochMs): PodDelta | PodGoneDelta | undefined {
    const pod = this.#pods.get(node)?.get(uid);
    if (!pod && !gone) return undefined;
    const facts = this.#facts(node, now);
    const cut = decidingTolerations(facts.taints);
    if (pod) return { kind: 'pod', ...facts, pod: asSent(pod, cut) };
    const deleted = this.#deleted.get(node)?.get(uid);
    return { kind: 'pod-gone', ...facts, uid, ...(deleted ? { deleted: asSent(deleted, cut) } : {}) };
  }

  #rankOf(uid: PodUid): number {
    const rank = this.#ranks.get(uid) ?? this.#ranks.size;
    this.#ranks.set(uid, rank);
    return rank;
  }

  #forgetDeserted(node: NodeName): boolean {
    const deserted = this.#nodes.get(node)?.deletedAt !== undefined && this.#pods.get(node)?.size === 0;
    if (deserted) {
      this.#nodes.delete(node);
      this.#pods.delete(node);
      this.#deserted.add(node);
    }
    return deserted;
  }

  #facts(node: NodeName, now: EpochMs): NodeFacts {
    this.#sequence += 1;
    const version: Version = { epoch: this.#epoch, sequence: this.#sequence };
    // The pods of a node that was deleted without its taints are unknown, so its delta reports the node as untainted.
    const latest = this.latest(now);
    const gone = this.#deserted.has(node) ? { taints: [], deletedAt: latest } : UNTAINTED;
    const { recalled: _recalled, ...entry } = this.#clamped(node, latest) ?? gone;
    // The range of a skew narrows over time, so `latest` may be earlier than a previous observation.
    const observedAt = Math.max(latest, ...entry.taints.map(({ seenAt }) => seenAt));
    const guard = this.#guardRevision ? { guardRevision: this.#guardRevision } : {};
    return { ref: { cluster: this.#cluster, node }, version, observedAt, ...entry, ...guard };
  }

  /** Drops times in the future, from a clock that was set back since: sent again, they would last. */
  #clamped(node: NodeName, latest: EpochMs): NodeEntry | undefined {
    const entry = this.#nodes.get(node);
    const { taints, deletedAt = 0 } = entry ?? UNTAINTED;
    if (!entry || ![deletedAt, ...taints.map(({ seenAt }) => seenAt)].some((at) => isAhead(at, latest)))
      return entry;
    const clamped = {
      ...entry,
      taints: taints.map((taint) => ({ ...taint, seenAt: begunBy(taint.seenAt, latest) })),
      ...(entry.deletedAt === undefined ? {} : { deletedAt: begunBy(deletedAt, latest) }),
    };
    this.#nodes.set(node, clamped);
    return clamped;
  }
}

/**
 * How each evicting taint's countdown is known. A known taint keeps that. A new one was `added` if the node was known
 * without it or known to be absent; otherwise it is `preexisting`. A taint whose time changed was set again then. A
 * recalled taint is preexisting now: it may have been absent since it was stored.
 */
function seeTaints(
  evicting: readonly LiveTaint[],
  before: NodeEntry | undefined,
  wasKnown: boolean,
  now: EpochMs,
): readonly SeenTaint[] {
  const stoodOf = countdownsOf(before?.taints ?? []);
  const setAgainAtOf = setAgainSince(before?.taints ?? [], evicting);
  return evicting.map((taint) => {
    const { key, value, effect, virtual, timeAdded } = taint;
    const stood = stoodOf(taint);
    const seenBefore = before?.recalled ? undefined : stood?.seenAt;
    const setAgainAt = setAgainAtOf(taint);
    const setAt =
      setAgainAt === undefined || isAhead(setAgainAt, now) ? 0 : Math.min(latestOf(setAgainAt, now), now);
    return {
      key,
      ...(value ? { value } : {}),
      effect,
      ...(virtual ? { virtual } : {}),
      ...defined({ timeAdded }),
      known: stood?.known ?? (wasKnown ? 'added' : 'preexisting'),
      seenAt: Math.max(begunBy(seenBefore ?? now, now), setAt),
    };
  });
}

function podFacts(pod: LivePod, before: PodFacts | undefined, now: EpochMs): SeenPod {
  const { uid, namespace, name, owner, tolerations, labels, annotations } = pod;
  const podSince = before?.podSince ?? latestOf(begunBy(pod.podSince, now), now);
  const traits = labels || annotations ? JSON.stringify([labels, annotations]) : undefined;
  const mark = traits === undefined ? {} : { traitsMark: hash('md5', traits, 'base64') };
  return { uid, namespace, name, ...defined({ owner }), tolerations, podSince, ...mark };
}

function asSent<Pod extends SeenPod>(
  { traitsMark: _traitsMark, ...pod }: Pod,
  cut: ReturnType<typeof decidingTolerations>,
): Omit<Pod, 'traitsMark'> {
  return { ...pod, tolerations: cut(pod.tolerations) };
}

/**
 * Reports whether nothing changed that decides or holds an eviction. Traits count too: an owner releases a pod that it
 * no longer selects. Lists are usually shared objects, so identity is compared first.
 */
const isSame = (before: SeenPod, pod: SeenPod): boolean =>
  before.traitsMark === pod.traitsMark &&
  isDeepStrictEqual(before.owner, pod.owner) &&
  (before.tolerations === pod.tolerations || isDeepStrictEqual(before.tolerations, pod.tolerations));
