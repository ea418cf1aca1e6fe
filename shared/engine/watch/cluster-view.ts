import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
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
import { countdownsOf, setAnewSince } from '#shared/taints/deadline.ts';
import { decidingTolerations } from '#shared/taints/deciding.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { NodeTally } from './node-tally.ts';
import { PodRoom } from './pod-room.ts';
import { TerminatingPods } from './terminating-pods.ts';

/** What there is something to tell of: a node with all its pods or, with a UID, one pod that is there. */
export interface Subject {
  readonly node: NodeName;
  readonly uid?: PodUid;
  /** The pod was seen to go, for good. */
  readonly gone?: boolean;
}

interface NodeEntry {
  readonly taints: readonly SeenTaint[];
  /** See `LiveNode`; of a tainted node only. */
  readonly taintsStamp?: string;
  /** When it went; absent = it is there. */
  readonly deletedAt?: EpochMs;
  /** Its taints are what the store had of it; here it was never seen with them. */
  readonly recalled?: true;
}

/** A pod as it is known here. */
interface SeenPod extends PodFacts {
  /** Changes with its labels, by which policy may exclude it: they themselves take ten times the memory. Absent: it has none. */
  readonly labelsMark?: string;
}

/** How much a view knows. `pods`: those of tainted nodes. */
export interface ViewCounts {
  readonly nodes: number;
  readonly tainted: number;
  readonly pods: number;
}

const UNTAINTED: NodeEntry = { taints: [] };

/**
 * What the relay knows of one cluster: all nodes, and the pods of those with a taint that evicts. No I/O: events in, and
 * out comes of what there is something to tell. What is told is asked for when it is sent, and is the truth of that
 * moment. There is nothing to tell of nodes without a taint that evicts.
 *
 * A node delta speaks of all pods of its node, so it waits for their list ({@link tells}); that a node has lost its
 * taints can be told at once. Node and pod events come by watches of their own in no common order; whichever comes
 * second meets the other's state.
 */
export class ClusterView {
  /** Keys whose NoSchedule taints are read as NoExecute. Where they change, the nodes have to be listed anew. */
  virtualKeys: readonly string[] = [];
  /** The latest that it may be by any clock, at a time of ours: what is seen is stamped with it, so that no countdown starts too early. */
  latest: (now: EpochMs) => EpochMs = (now) => now;
  /** What the guard judges by. Between calls it is of all nodes, never of half a list. */
  readonly tally: NodeTally;
  readonly #cluster: ClusterName;
  readonly #epoch: number;
  #sequence = 0;
  #guardRevision: number | undefined;
  readonly #nodes = new Map<NodeName, NodeEntry>();
  /** Of nodes whose list is in. */
  readonly #pods = new Map<NodeName, Map<PodUid, SeenPod>>();
  readonly #leaving = new TerminatingPods();
  /** Pods of followed nodes that somebody else deleted, for as long as a delta counts that tells of it. */
  readonly #deleted = new Map<NodeName, Map<PodUid, DeletedPod>>();
  /** Nodes that went without a taint. The store may not know that yet. */
  readonly #wentUntainted = new Set<NodeName>();
  /** Nodes that went, and after them the last of their pods. The store may not know that yet. */
  readonly #deserted = new Set<NodeName>();
  readonly #room = new PodRoom(() => this.#keptPods());
  #listed = false;
  /** The place of each pod among those that may have been held, as of the last wake; further ones follow as they are told. */
  readonly #ranks = new Map<PodUid, number>();
  /** Whether it knows the store's tainted nodes too. From then on a node that it does not know was not there. */
  #recalled = false;

  /** `epoch` is the lease's: all deltas of a later view are newer. `clock`: as for {@link NodeTally}. */
  constructor(cluster: ClusterName, epoch: number, clock?: Clock) {
    this.tally = new NodeTally(clock);
    this.#cluster = cluster;
    this.#epoch = epoch;
  }

  /** What is told from now on is told under this revision of the guard, or a newer one. */
  guardedBy(revision: number): void {
    this.#guardRevision = revision;
  }

  /** Whether the nodes are listed, so that there may be something to tell. */
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

  /** Whether there is a node whose pods are to be followed and are not listed yet. It is asked after each list. */
  get awaitsPods(): boolean {
    return this.#nodes.entries().some(([name, { taints }]) => taints.length > 0 && !this.#pods.has(name));
  }

  /** The nodes whose pods are to be followed: the tainted ones, and deleted ones that were, until they have no pods. */
  followed(): readonly NodeName[] {
    return [...this.#nodes].filter(([, { taints }]) => taints.length > 0).map(([name]) => name);
  }

  /** The nodes with a taint of one of these keys that evicts, each with its pods if they are listed. */
  downNodes(keys: readonly string[]): readonly DownNode[] {
    return [...this.#nodes]
      .filter(([, { taints }]) => taints.some(({ key }) => keys.includes(key)))
      .map(([node, { taints, deletedAt }]) => {
        const pods = this.#pods.get(node);
        return {
          ...{ node, taints },
          ...(deletedAt === undefined ? {} : { deletedAt }),
          ...(pods ? { pods: [...pods.values()] } : {}),
        };
      });
  }

  follows(node: NodeName): boolean {
    return (this.#nodes.get(node) ?? UNTAINTED).taints.length > 0;
  }

  /** What the rules ask about a node. */
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

  /** Whether a node's pods are to be watched: it is followed, or evicted pods have not left it yet. */
  watches(node: NodeName): boolean {
    return this.follows(node) || this.#leaving.has(node);
  }

  /** All such nodes. */
  watched(): readonly NodeName[] {
    return [...new Set([...this.followed(), ...this.#leaving.nodes])];
  }

  /** Pods that were evicted before this view may not have left these nodes. */
  expectLeaving(nodes: Iterable<NodeName>): void {
    this.#leaving.expect(nodes);
  }

  /** Evicted pods that have not left their nodes although their grace period has been over for long; the longest first. */
  stuck(now: EpochMs): readonly StuckPod[] {
    return this.#leaving.stuck(now).map((pod) => ({ ...pod, nodeState: this.#nodeState(pod.node) }));
  }

  /** Evicted pods that are gone since this was last called. */
  takeGone(): readonly PodUid[] {
    return this.#leaving.takeGone();
  }

  #nodeState(node: NodeName): StuckPod['nodeState'] {
    const entry = this.#nodes.get(node);
    if (!entry || entry.deletedAt !== undefined) return 'gone';
    return entry.taints.some(({ key }) => key === NODE_UNREACHABLE) ? 'unreachable' : 'there';
  }

  /** Whether there is all it takes for a delta of a node. */
  tells(node: NodeName): boolean {
    return !this.follows(node) || this.#pods.has(node);
  }

  /** A complete list of nodes: what is not in it is gone. */
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
    this.#wentUntainted.delete(name);
    this.#deserted.delete(name);
    const taints = seeTaints(
      evictingTaints(node.taints, this.virtualKeys),
      known,
      known !== undefined || this.#recalled,
      this.latest(now),
    );
    this.tally.saw(node, taints, before.taints, { listed, now });
    if (taints.length === 0) {
      this.#nodes.set(name, UNTAINTED);
      this.#pods.delete(name);
      this.#deleted.delete(name);
      return before.taints.length > 0 ? [{ node: name }] : [];
    }
    // Also when the taints were written anew as they were: what is to be evicted waits to hear of that.
    const entry = { taints, ...(taintsStamp ? { taintsStamp } : {}) };
    this.#nodes.set(name, entry);
    return isDeepStrictEqual(entry, before) ? [] : [{ node: name }];
  }

  /** A deleted node is remembered for as long as it has pods: its last known taints stand for them. */
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
   * A complete list of the pods of a node that is followed. There is nothing to tell when it is what was known before. Throws
   * `ApiError` when there is no room for them.
   */
  replacePods(node: NodeName, pods: readonly LivePod[], now: EpochMs): readonly Subject[] {
    this.#room.admit(pods);
    this.#leaving.replace(node, pods);
    if (!this.follows(node)) return [];
    const before = this.#pods.get(node);
    const staying = pods.filter((pod) => !pod.terminating && pod.node === node);
    const seen = (pod: LivePod) => podFacts(pod, before?.get(pod.uid), this.latest(now));
    const known = new Map(staying.map((pod) => [pod.uid, seen(pod)]));
    this.#pods.set(node, known);
    for (const pod of pods) this.#noteDeleted(pod, seen(pod));
    return this.#forgetDeserted(node) || !isDeepStrictEqual(known, before) ? [{ node }] : [];
  }

  /** A pod that came or changed; says nothing of one whose node is not listed. Throws `ApiError` when there is no room for it. */
  upsertPod(pod: LivePod, now: EpochMs): readonly Subject[] {
    this.#room.admit([pod]);
    if (pod.terminating) {
      this.#leaving.see(pod);
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

  /**
   * A pod that is gone or going. There is nothing to tell of one that this service evicted: it records that itself, so
   * half of an eviction's traffic is saved.
   */
  deletePod(pod: LivePod): readonly Subject[] {
    this.#leaving.lose(pod);
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

  /** What somebody else deleted is told of, be it with its node or by itself. */
  #noteDeleted({ uid, node, deleted }: LivePod, known: PodFacts): void {
    if (!node || !deleted) return;
    const noted = this.#deleted.get(node) ?? new Map<PodUid, DeletedPod>();
    noted.set(uid, { ...known, deleted });
    this.#deleted.set(node, noted);
  }

  /** All of which facts are kept. */
  *#keptPods() {
    for (const pods of [...this.#pods.values(), ...this.#deleted.values()]) yield* pods.values();
    for (const pod of this.#leaving.pods()) yield { ...pod, leaving: pod };
  }

  /** Those of a node that are told of still. */
  #deletedOf(node: NodeName, now: EpochMs): readonly DeletedPod[] {
    const noted = this.#deleted.get(node);
    for (const { uid, deleted } of noted?.values() ?? []) {
      // One of the future would never be forgotten.
      if (isAhead(deleted.at, now) || now - deleted.at > DELTA_MAX_AGE_MS) noted?.delete(uid);
    }
    return [...(noted?.values() ?? [])];
  }

  /**
   * Everything tainted once more, and what only the store still holds as tainted. To be told after a gap and at every
   * resync, so that whatever was missed heals.
   */
  resync(stored: readonly TaintedNode[], now: EpochMs): readonly Subject[] {
    if (!this.#listed) return [];
    this.#recalled = true;
    for (const { node, state } of stored) {
      if (this.#nodes.has(node) || this.#wentUntainted.has(node)) continue;
      // A node that went unseen keeps its stored taints for as long as it has pods, but for those it may have lost before.
      const latest = this.latest(now);
      const deletedAt = begunBy(state.deletedAt ?? latest, latest);
      const taints = state.taints
        .filter((taint) => !isDoubtful(state, taint))
        .map(
          ({ since, ...taint }) => ({ ...taint, known: 'found', seenAt: begunBy(since, latest) }) as const,
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
   * Notes in which order those of the pods are to go that were held, for the wake that follows: for all that are due, as far
   * as can be told from here. `stored`: since when countdowns run. Returns the nodes with such pods, in that order.
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
   * Whether there is a pod that the built-in controller would have evicted by `before`, had it run: nothing else says of
   * every cluster that it does not. A pod that it began with is terminating, and so is none of those that are known here.
   * `Lt` and `Gt` match, whether or not they do in the cluster: a pod that might be tolerated is no evidence.
   */
  hasForgotten(before: EpochMs): boolean {
    const rules = { matching: { comparisonOperators: true } };
    return this.#pods.entries().some(([node, pods]) => {
      const { taints, deletedAt } = this.#nodes.get(node) ?? UNTAINTED;
      const timed = taints.map(({ seenAt, ...taint }) => ({ ...taint, since: seenAt }));
      const known = { taints: timed, ...(deletedAt === undefined ? {} : { deletedAt }) };
      return pods
        .values()
        .some((pod) => (builtInDeadline(known, pod, pod.podSince, rules) ?? Infinity) <= before);
    });
  }

  /** What is known of a node that it {@link tells} of, and all its pods. `wake`: what is overdue there is to be looked at at once. */
  nodeDelta(name: NodeName, now: EpochMs, wake: boolean): NodeDelta {
    const facts = this.#facts(name, now);
    const cut = decidingTolerations(facts.taints);
    const pods = [...(this.#pods.get(name)?.values() ?? [])].map((pod) => {
      const told = asTold(pod, cut);
      return wake ? { ...told, rank: this.#rankOf(pod.uid) } : told;
    });
    const deleted = this.#deletedOf(name, now).map((pod) => asTold(pod, cut));
    return { kind: 'node', ...facts, pods, ...(deleted.length > 0 ? { deleted } : {}), wake };
  }

  /** What is known of a pod: how it is, or that it is gone. `undefined`: it is not known to be either. */
  podDelta({ node, uid, gone }: Required<Subject>, now: EpochMs): PodDelta | PodGoneDelta | undefined {
    const pod = this.#pods.get(node)?.get(uid);
    if (!pod && !gone) return undefined;
    const facts = this.#facts(node, now);
    const cut = decidingTolerations(facts.taints);
    if (pod) return { kind: 'pod', ...facts, pod: asTold(pod, cut) };
    const deleted = this.#deleted.get(node)?.get(uid);
    return { kind: 'pod-gone', ...facts, uid, ...(deleted ? { deleted: asTold(deleted, cut) } : {}) };
  }

  #rankOf(uid: PodUid): number {
    const rank = this.#ranks.get(uid) ?? this.#ranks.size;
    this.#ranks.set(uid, rank);
    return rank;
  }

  /** The last pod of a deleted node takes its taints along. */
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
    // Of the pods of a node that went without its taints nothing is known: it is told of as untainted.
    const latest = this.latest(now);
    const gone = this.#deserted.has(node) ? { taints: [], deletedAt: latest } : UNTAINTED;
    const { recalled: _recalled, ...entry } = this.#clamped(node, latest) ?? gone;
    // The range of a skew gets narrower: what was seen was seen by now.
    const observedAt = Math.max(latest, ...entry.taints.map(({ seenAt }) => seenAt));
    const guard = this.#guardRevision ? { guardRevision: this.#guardRevision } : {};
    return { ref: { cluster: this.#cluster, node }, version, observedAt, ...entry, ...guard };
  }

  /** What is known of a node, without the future in which a clock saw it that was set back since: told of again, that would last. */
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
 * The taints of a node that evict, and how each one's countdown is known: as before while it stands, and else it
 * appeared on a node that was known without it, or to be absent, or was found on one of which nothing was known. One that
 * names another moment than before was set anew then. One that was only recalled is found now: it may have been gone since it was stored.
 */
function seeTaints(
  evicting: readonly LiveTaint[],
  before: NodeEntry | undefined,
  wasKnown: boolean,
  now: EpochMs,
): readonly SeenTaint[] {
  const stoodOf = countdownsOf(before?.taints ?? []);
  const anewAtOf = setAnewSince(before?.taints ?? [], evicting);
  return evicting.map((taint) => {
    const { key, value, effect, virtual, timeAdded } = taint;
    const stood = stoodOf(taint);
    const seenBefore = before?.recalled ? undefined : stood?.seenAt;
    const anewAt = anewAtOf(taint);
    const setAt = anewAt === undefined || isAhead(anewAt, now) ? 0 : Math.min(latestOf(anewAt, now), now);
    return {
      key,
      ...(value ? { value } : {}),
      effect,
      ...(virtual ? { virtual } : {}),
      ...(timeAdded === undefined ? {} : { timeAdded }),
      known: stood?.known ?? (wasKnown ? 'appeared' : 'found'),
      seenAt: Math.max(begunBy(seenBefore ?? now, now), setAt),
    };
  });
}

function podFacts(pod: LivePod, before: PodFacts | undefined, now: EpochMs): SeenPod {
  const { uid, namespace, name, owner, tolerations, labels } = pod;
  const podSince = before?.podSince ?? latestOf(begunBy(pod.podSince, now), now);
  const mark = labels ? { labelsMark: hash('md5', JSON.stringify(labels), 'base64') } : {};
  return { uid, namespace, name, ...(owner ? { owner } : {}), tolerations, podSince, ...mark };
}

/** A pod as a delta tells of it: of its tolerations only those that decide. */
function asTold<Pod extends SeenPod>(
  { labelsMark: _labelsMark, ...pod }: Pod,
  cut: ReturnType<typeof decidingTolerations>,
): Omit<Pod, 'labelsMark'> {
  return { ...pod, tolerations: cut(pod.tolerations) };
}

/**
 * Whether nothing about a pod changed by which it is decided, or held: its labels, and its owner, which lets go of a pod that it does
 * not select any more. Lists are shared objects as a rule, so identity comes first.
 */
const isSame = (before: SeenPod, pod: SeenPod): boolean =>
  before.labelsMark === pod.labelsMark &&
  isDeepStrictEqual(before.owner, pod.owner) &&
  (before.tolerations === pod.tolerations || isDeepStrictEqual(before.tolerations, pod.tolerations));
