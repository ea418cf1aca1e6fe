import { isDeepStrictEqual } from 'node:util';
import { BEHIND_PATIENCE_MS } from '#shared/eviction/evaluate.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { countdownIdentity } from '#shared/taints/deadline.ts';
import { firstMatch } from '#shared/taints/match.ts';
import type { LiveTaint, MatchOptions, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Disturbances } from './disturbances.ts';
import { Knowledge } from './knowledge.ts';

/** By taints of these keys node controllers say that a node is down. */
export const DOWN_KEYS: readonly string[] = [
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
];

/** Policy that is in force when a pod is judged is no older than this, and the look by which it is. */
const TERMS_AGE_MS = 1_000;
/** By when all is decided anew that other policy puts off or brings forward. */
const TERMS_HEARD_MS = 9_000;

/** A node as it was for a while. */
interface NodePast {
  readonly at: EpochMs;
  readonly state: number;
  /** Those with NoExecute; the last known ones while the node is deleted. */
  readonly taints: readonly LiveTaint[];
  readonly deleted: boolean;
  /** Whether its last pod took its taints along. */
  readonly deserted: boolean;
  readonly stamp: string | undefined;
  /** When a node controller found it down, by any taint that says so, while it is there. */
  readonly downSince: EpochMs | undefined;
}

interface PodPast {
  readonly node: NodeName;
  readonly podSince: EpochMs;
  readonly tolerations: { readonly at: EpochMs; readonly tolerations: readonly Toleration[] }[];
}

/** For how many seconds pods tolerate taints of some keys, by policy, whatever they say; from a moment on. */
interface Terms {
  readonly at: EpochMs;
  readonly seconds: Readonly<Record<string, number>>;
}

/** The start of the countdown of a taint that a node has in one of its states. */
type Start = (taint: LiveTaint, past: NodePast) => EpochMs;

/** A node as who looks at it sees it. */
interface Look {
  readonly there: boolean;
  readonly downSince: EpochMs | undefined;
}

/**
 * By when a pod is let go that is due by a taint. `changedAt`: when what it tolerates was changed last, which may have
 * made it due at a moment before.
 */
export type Freedom = (key: string, dueAt: EpochMs, changedAt: EpochMs) => EpochMs | undefined;

/**
 * What really happened in a cluster, kept apart from the service, and the rule in its plainest form over it: when a
 * pod must go, and when it may.
 */
export class Truth {
  readonly knowledge = new Knowledge();
  readonly #cluster: ClusterName;
  readonly #options: MatchOptions;
  readonly #disturbances: Disturbances;
  readonly #nodes = new Map<NodeName, NodePast[]>();
  readonly #pods = new Map<PodUid, PodPast>();
  readonly #changedAt = new Map<NodeName, EpochMs>();
  readonly #terms: [Terms, ...Terms[]] = [{ at: 0, seconds: {} }];
  #states = 0;

  constructor(cluster: ClusterName, options: MatchOptions, disturbances: Disturbances) {
    this.#cluster = cluster;
    this.#options = options;
    this.#disturbances = disturbances;
  }

  /** Returns the number of the state. `taints`: `undefined` = the node was deleted. */
  nodeIs(at: EpochMs, name: NodeName, taints: readonly LiveTaint[] | undefined, stamp?: string): number {
    const past = this.#pastOf(name);
    const evicting = taints?.filter(({ effect }) => effect === 'NoExecute') ?? past.at(-1)?.taints ?? [];
    const downSince = foundDownAt(taints ?? []);
    const deleted = taints === undefined;
    return this.#add(name, { at, taints: evicting, deleted, deserted: false, stamp, downSince });
  }

  /** The last pod of a deleted node is gone or going: nobody remembers its taints any more. */
  nodeIsDeserted(at: EpochMs, name: NodeName): void {
    const nothing = { taints: [], stamp: undefined, downSince: undefined };
    this.#add(name, { at, ...nothing, deleted: true, deserted: true });
  }

  #add(name: NodeName, past: Omit<NodePast, 'state'>): number {
    this.#states += 1;
    this.#changedAt.set(name, past.at);
    this.#pastOf(name).push({ ...past, state: this.#states });
    return this.#states;
  }

  podIs(at: EpochMs, pod: LivePod): void {
    if (pod.node === undefined) return;
    const past = this.#pods.get(pod.uid) ?? { node: pod.node, podSince: at, tolerations: [] };
    past.tolerations.push({ at, tolerations: pod.tolerations });
    this.#changedAt.set(pod.node, at);
    this.#pods.set(pod.uid, past);
  }

  /** From now on policy says for how many seconds pods tolerate taints of these keys. */
  termsAre(at: EpochMs, seconds: Terms['seconds']): void {
    if (!isDeepStrictEqual(seconds, this.#termsNow.seconds)) this.#terms.push({ at, seconds });
  }

  get #termsNow(): Terms {
    return this.#terms.at(-1) ?? this.#terms[0];
  }

  /** A pod is gone for good. */
  podIsGone(at: EpochMs, node: NodeName | undefined): void {
    if (node !== undefined) this.#changedAt.set(node, at);
  }

  /** When a node or one of its pods changed last. */
  changedAt(name: NodeName): EpochMs {
    return Math.max(this.#changedAt.get(name) ?? 0, this.#termsNow.at + TERMS_HEARD_MS);
  }

  /** What a node's pods are to be judged by; `undefined`: it went, and nobody was told what it was like. */
  taintsOf(name: NodeName): readonly LiveTaint[] | undefined {
    const past = this.#nodes.get(name)?.at(-1);
    return past?.deleted && !past.deserted && !this.#wasTold(name) ? undefined : past?.taints;
  }

  /** Whether the node went on which a pod is, and the service cannot know that the pod was there before. */
  isLost(uid: PodUid): boolean {
    const pod = this.#podOf(uid);
    const node = this.#pastOf(pod.node).at(-1);
    if (!node?.deleted) return false;
    const seen = this.knowledge.podSeenBefore(uid, pod.node, node.state);
    return node.deserted || !seen || pod.podSince >= node.at || !this.#wasTold(pod.node);
  }

  /** Whether the service was told what a node was like when it was last there. */
  #wasTold(name: NodeName): boolean {
    const before = this.#pastOf(name).findLast(({ deleted }) => !deleted);
    return before !== undefined && this.knowledge.decidedBy(name, before.state, Infinity);
  }

  /** Whether a node was there all the time from `since` until now. */
  wasThere(name: NodeName, since: EpochMs): boolean {
    const past = this.#pastOf(name);
    return past.every(({ deleted }, index) => !deleted || (past[index + 1]?.at ?? Infinity) <= since);
  }

  /** Whether a node is there in a state, and when it was found down. */
  lookOf(name: NodeName, state: number): Look {
    const past = this.#pastOf(name).find((each) => each.state === state);
    return { there: past !== undefined && !past.deleted, downSince: past?.downSince };
  }

  /** The number of a node's present state; `undefined`: there never was one. */
  stateOf(name: NodeName): number | undefined {
    return this.#nodes.get(name)?.at(-1)?.state;
  }

  /** The numbers of the present states of all nodes that there ever were. */
  states(): ReadonlyMap<NodeName, number> {
    return new Map(
      [...this.#nodes].flatMap(([name, past]) => past.slice(-1).map(({ state }) => [name, state])),
    );
  }

  /** As {@link states}, of those that an API server shows: that a node is deserted it does not say. */
  shownStates(): ReadonlyMap<NodeName, number> {
    return new Map(
      [...this.#nodes].flatMap(([name, past]) => {
        const shown = past.findLast(({ deserted }) => !deserted);
        return shown ? [[name, shown.state]] : [];
      }),
    );
  }

  /** The number of the last state in which a node was deserted; `undefined`: it never was. */
  desertedState(name: NodeName): number | undefined {
    return this.#nodes.get(name)?.findLast(({ deserted }) => deserted)?.state;
  }

  /**
   * The earliest moment at which a pod may go, as it is now, for one who looked at its node at `lookedAt` and saw that
   * state. `undefined`: never, then. `key`: by a taint of that key alone.
   */
  mayGo(uid: PodUid, seen: number, lookedAt: EpochMs, key?: string): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const start = (patient: boolean): Start => this.#lenientStart(pod.node, lookedAt, patient);
    const inForce = this.#terms.filter(
      (_, index) => (this.#terms[index + 1]?.at ?? Infinity) >= lookedAt - TERMS_AGE_MS,
    );
    const moments = this.#candidates(pod.node, seen, lookedAt).flatMap((past) => {
      // When a node went is known by when a relay heard of it.
      if (past.deleted && pod.podSince >= this.knowledge.seenAt(past.state)) return [];
      return inForce.flatMap((terms) => {
        const known = this.#deadline(pod, past, start(false), terms, key);
        const waited = this.#deadline(pod, past, start(true), terms, key);
        return [known, waited === undefined ? undefined : waited + BEHIND_PATIENCE_MS];
      });
    });
    const possible = moments.filter((moment) => moment !== undefined);
    return possible.length > 0 ? Math.min(...possible) : undefined;
  }

  /** The keys of the taints by which pods may be judged by one who looked at their node at `lookedAt` and saw that state. */
  keysBy(name: NodeName, seen: number, lookedAt: EpochMs): readonly string[] {
    const taints = this.#candidates(name, seen, lookedAt).flatMap((past) => past.taints);
    return [...new Set(taints.map(({ key }) => key))];
  }

  /** What a look that saw a state may be judged by: of a deleted node also what was told by then of it while it was there. */
  #candidates(name: NodeName, seen: number, lookedAt: EpochMs): readonly NodePast[] {
    const past = this.#pastOf(name);
    const looked = past.filter(({ state }) => state === seen);
    if (!looked.some(({ deleted }) => deleted)) return looked;
    const told = past.findLast(
      ({ deleted, state }) => !deleted && this.knowledge.decidedBy(name, state, lookedAt),
    );
    const oldest = told?.state ?? Math.min(seen, ...this.knowledge.perhapsTold(name, Infinity));
    return past.filter(({ state }) => state >= oldest && state <= seen);
  }

  /**
   * The start of a countdown for one who looked then: from its last coming, or from before a flap that no relay told
   * of. The list's stamp gives a flap away until a relay has told of the node as it is; `patient`: to one who waits
   * for that no longer.
   */
  #lenientStart(name: NodeName, lookedAt: EpochMs, patient: boolean): Start {
    const past = this.#pastOf(name);
    const newest = this.knowledge.perhapsTold(name, lookedAt);
    return (taint, seen) => {
      const hidden = past.some(({ state, stamp }) => newest.includes(state) && stamp === seen.stamp);
      const missed = (gap: readonly NodePast[]) => {
        // Whoever tells that a node is gone tells nothing of its taints, but for those that its last pod took along.
        const shown = gap.filter(({ deleted, deserted }) => !deleted || deserted);
        const told = this.knowledge.toldOfAny(
          name,
          shown.map(({ state }) => state),
          lookedAt,
        );
        return !told && (hidden || patient || seen.deleted);
      };
      return startOf(past, taint, seen, { missed, lenient: true });
    };
  }

  /**
   * By when a pod must be gone, as things are now, given what went wrong; `undefined`: it may stay. `freedBy`: by when a pod
   * is let go that is due since then and that a taint of that key makes go; `undefined`: nothing ever forbade it.
   */
  mustGo(uid: PodUid, freedBy: Freedom = () => undefined): EpochMs | undefined {
    const dueAt = this.deadline(uid);
    if (dueAt === undefined) return undefined;
    const pod = this.#podOf(uid);
    const keys =
      this.#pastOf(pod.node)
        .at(-1)
        ?.taints.map(({ key }) => key) ?? [];
    const changedAt = Math.max(pod.tolerations.at(-1)?.at ?? 0, this.#termsNow.at);
    const moments = [...new Set(keys)].flatMap((key) => {
      const due = this.#mustGoBy(uid, key);
      if (due === undefined) return [];
      const freed = freedBy(key, dueAt, changedAt);
      if (freed === undefined) return [due];
      return [this.#disturbances.excusedUntil(this.#cluster, Math.max(due, freed))];
    });
    return moments.length === 0 ? undefined : Math.min(...moments);
  }

  /** By when by a taint of that key. */
  #mustGoBy(uid: PodUid, key: string): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const node = this.#pastOf(pod.node).at(-1);
    const tolerations = pod.tolerations.at(-1);
    if (!node || !tolerations || this.isLost(uid)) return undefined;
    const by = (at: EpochMs) => this.#disturbances.excusedUntil(this.#cluster, at);
    const past = this.#pastOf(pod.node);
    const start: Start = (taint) => {
      const recreatedAt = past.findLast((each, index) => !each.deleted && past[index - 1]?.deleted)?.at ?? 0;
      return by(Math.max(startOf(past, taint, node, STRICT), recreatedAt, pod.podSince));
    };
    const terms = this.#termsNow;
    const deadline = this.#deadline(pod, node, start, terms, key);
    if (deadline === undefined) return undefined;
    const changes = [node.at, tolerations.at, pod.podSince, terms.at + TERMS_HEARD_MS];
    return by(Math.max(deadline, ...changes.map(by)));
  }

  /** Whether a pod is to go at some time, as things are now, and when at the earliest. */
  deadline(uid: PodUid): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const past = this.#pastOf(pod.node);
    const node = past.at(-1);
    if (!node || this.isLost(uid)) return undefined;
    return this.#deadline(pod, node, (taint) => startOf(past, taint, node, STRICT), this.#termsNow);
  }

  #deadline(
    pod: PodPast,
    node: NodePast,
    start: Start,
    { seconds: bySaid }: Terms,
    key?: string,
  ): EpochMs | undefined {
    const tolerations = pod.tolerations.at(-1)?.tolerations ?? [];
    const ends = node.taints.flatMap((taint) => {
      if (key !== undefined && taint.key !== key) return [];
      const match = firstMatch(tolerations, taint, this.#options);
      if (match && match.tolerationSeconds === undefined) return [];
      const seconds = bySaid[taint.key] ?? Math.max(0, Number(match?.tolerationSeconds ?? 0));
      return [Math.max(start(taint, node), pod.podSince) + seconds * 1000];
    });
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }

  #pastOf(name: NodeName): NodePast[] {
    const past = this.#nodes.get(name) ?? [];
    this.#nodes.set(name, past);
    return past;
  }

  #podOf(uid: PodUid): PodPast {
    const pod = this.#pods.get(uid);
    if (!pod) throw new Error(`nobody knows of pod ${uid}`);
    return pod;
  }
}

/** The first moment that a taint gives of those by which node controllers say that a node is down. */
function foundDownAt(taints: readonly LiveTaint[]): EpochMs | undefined {
  const found = taints.flatMap(({ key, timeAdded }) =>
    timeAdded !== undefined && DOWN_KEYS.includes(key) ? [timeAdded] : [],
  );
  return found.length > 0 ? Math.min(...found) : undefined;
}

/** How the start of a countdown is reckoned. */
interface Reckoning {
  /** Whether what these states say, or that they lack the taint, was missed. */
  missed(gap: readonly NodePast[]): boolean;
  /** A taint that says that it was set anew starts its countdown by what it says, and not by when that was. */
  readonly lenient: boolean;
}

const STRICT: Reckoning = { missed: () => false, lenient: false };

/** When the countdown of a taint began that a node has in a state. */
function startOf(
  past: readonly NodePast[],
  taint: LiveTaint,
  seen: NodePast,
  { missed, lenient }: Reckoning,
): EpochMs {
  const identity = countdownIdentity(taint);
  let since = seen.at;
  let setAt = 0;
  let gap: NodePast[] = [];
  let after = seen;
  for (const each of past.toReversed()) {
    if (each.state > seen.state) continue;
    if (each.taints.some((other) => countdownIdentity(other) === identity)) {
      if (gap.length > 0 && !missed(gap)) break;
      gap = [];
      // What a state says that nobody told of cannot be known: those around it are compared.
      if (!missed([each])) {
        const anew = setAnew(taint, each, after, lenient);
        if (anew !== undefined && !lenient) break;
        setAt = Math.max(setAt, anew ?? 0);
        after = each;
      }
      since = each.at;
    } else {
      gap.push(each);
    }
  }
  return Math.max(since, Math.min(setAt, seen.at));
}

/** What a taint says of when it was set is cut to the second. */
const CUT_MS = 999;

/**
 * When somebody set the taint between two states, by what it says then: at the end of that second, or as it was seen. `undefined`:
 * nobody did, one that shares its countdown stood through, or it was swapped for that one; or, if one is `lenient`, perhaps nobody did.
 */
function setAnew(taint: LiveTaint, before: NodePast, after: NodePast, lenient: boolean): EpochMs | undefined {
  const identity = countdownIdentity(taint);
  const of = ({ taints }: NodePast) => taints.filter((each) => countdownIdentity(each) === identity);
  const [old, anew] = [of(before), of(after)];
  const both = anew.flatMap(({ key, timeAdded }) => {
    const same = old.find((each) => each.key === key);
    return same ? [{ stood: same.timeAdded === timeAdded, timeAdded }] : [];
  });
  // One of two that share a countdown may be compared with the other.
  const sure = old.length === 1 && anew.length === 1;
  if (both.some(({ stood }) => stood) || (lenient && !sure)) return undefined;
  const moments = both.flatMap(({ timeAdded }) => (timeAdded === undefined ? [] : [timeAdded]));
  return moments.length === 0 ? undefined : Math.min(Math.max(...moments) + CUT_MS, after.at);
}
