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

/** The keys of the taints by which node controllers mark a node as down. */
export const DOWN_KEYS: readonly string[] = [
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
];

/** The maximum age of the policy, and of the observation, by which a pod is judged. */
const TERMS_AGE_MS = 1_000;
/** The time by which all deadlines that a changed policy moves are reevaluated. */
const TERMS_RECEIVED_MS = 9_000;

/** The state of a node for a while. */
interface NodePast {
  readonly at: EpochMs;
  readonly state: number;
  /** The NoExecute taints; while the node is deleted, the last known ones. */
  readonly taints: readonly LiveTaint[];
  readonly deleted: boolean;
  /** True if the taints were forgotten with the node's last pod. */
  readonly deserted: boolean;
  readonly stamp: string | undefined;
  /** The time when a node controller found the node down, by any such taint, while the node exists. */
  readonly downSince: EpochMs | undefined;
}

interface PodPast {
  readonly node: NodeName;
  readonly podSince: EpochMs;
  readonly tolerations: { readonly at: EpochMs; readonly tolerations: readonly Toleration[] }[];
}

/** The seconds for which the policy makes pods tolerate taints of some keys, overriding their own; from a given time on. */
interface Terms {
  readonly at: EpochMs;
  readonly seconds: Readonly<Record<string, number>>;
}

/** Returns the start of the countdown of a taint that a node has in one of its states. */
type Start = (taint: LiveTaint, past: NodePast) => EpochMs;

/** A node as an observer sees it. */
interface NodeReading {
  readonly there: boolean;
  readonly downSince: EpochMs | undefined;
}

/**
 * Returns the time by which a pod that is due by a taint is released. `changedAt`: the last change of its tolerations, which may
 * have made it due at an earlier time.
 */
export type Freedom = (key: string, dueAt: EpochMs, changedAt: EpochMs) => EpochMs | undefined;

/**
 * The actual events of a cluster, separate from the service. The rule in its plainest form decides over them when a pod must be
 * evicted, and when it may.
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

  /** Notes the state of a node, and returns its number. `taints`: `undefined` = the node was deleted. */
  nodeIs(at: EpochMs, name: NodeName, taints: readonly LiveTaint[] | undefined, stamp?: string): number {
    const past = this.#pastOf(name);
    const evicting = taints?.filter(({ effect }) => effect === 'NoExecute') ?? past.at(-1)?.taints ?? [];
    const downSince = foundDownAt(taints ?? []);
    const deleted = taints === undefined;
    return this.#add(name, { at, taints: evicting, deleted, deserted: false, stamp, downSince });
  }

  /** Notes that the last pod of a deleted node is deleted or terminating: its taints are forgotten. */
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

  /** Notes the seconds for which the policy makes pods tolerate taints of these keys, from now on. */
  termsAre(at: EpochMs, seconds: Terms['seconds']): void {
    if (!isDeepStrictEqual(seconds, this.#termsNow.seconds)) this.#terms.push({ at, seconds });
  }

  get #termsNow(): Terms {
    return this.#terms.at(-1) ?? this.#terms[0];
  }

  /** Notes that a pod was removed. */
  podIsGone(at: EpochMs, node: NodeName | undefined): void {
    if (node !== undefined) this.#changedAt.set(node, at);
  }

  /** Returns the time of the last change of a node or of one of its pods. */
  changedAt(name: NodeName): EpochMs {
    return Math.max(this.#changedAt.get(name) ?? 0, this.#termsNow.at + TERMS_RECEIVED_MS);
  }

  /** Returns the taints that apply to a node's pods; `undefined`: the node was deleted, and its taints were never reported. */
  taintsOf(name: NodeName): readonly LiveTaint[] | undefined {
    const past = this.#nodes.get(name)?.at(-1);
    return past?.deleted && !past.deserted && !this.#wasSent(name) ? undefined : past?.taints;
  }

  /** Reports whether a pod's node was deleted, and the service cannot have seen the pod before. */
  isLost(uid: PodUid): boolean {
    const pod = this.#podOf(uid);
    const node = this.#pastOf(pod.node).at(-1);
    if (!node?.deleted) return false;
    const seen = this.knowledge.podSeenBefore(uid, pod.node, node.state);
    return node.deserted || !seen || pod.podSince >= node.at || !this.#wasSent(pod.node);
  }

  /** Reports whether the service received the last state of a node before its deletion. */
  #wasSent(name: NodeName): boolean {
    const before = this.#pastOf(name).findLast(({ deleted }) => !deleted);
    return before !== undefined && this.knowledge.decidedBy(name, before.state, Infinity);
  }

  /** Reports whether a node existed all the time from `since` until now. */
  wasThere(name: NodeName, since: EpochMs): boolean {
    const past = this.#pastOf(name);
    return past.every(({ deleted }, index) => !deleted || (past[index + 1]?.at ?? Infinity) <= since);
  }

  /** Returns whether a node exists in a state, and when it was found down. */
  readingOf(name: NodeName, state: number): NodeReading {
    const past = this.#pastOf(name).find((each) => each.state === state);
    return { there: past !== undefined && !past.deleted, downSince: past?.downSince };
  }

  /** Returns the number of a node's current state; `undefined`: the node never existed. */
  stateOf(name: NodeName): number | undefined {
    return this.#nodes.get(name)?.at(-1)?.state;
  }

  /** Returns the numbers of the current states of all nodes that ever existed. */
  states(): ReadonlyMap<NodeName, number> {
    return new Map(
      [...this.#nodes].flatMap(([name, past]) => past.slice(-1).map(({ state }) => [name, state])),
    );
  }

  /** Returns the states as {@link states} does, as an API server shows them: it does not show that a node is deserted. */
  shownStates(): ReadonlyMap<NodeName, number> {
    return new Map(
      [...this.#nodes].flatMap(([name, past]) => {
        const shown = past.findLast(({ deserted }) => !deserted);
        return shown ? [[name, shown.state]] : [];
      }),
    );
  }

  /** Returns the number of the last state in which a node was deserted; `undefined`: it never was. */
  desertedState(name: NodeName): number | undefined {
    return this.#nodes.get(name)?.findLast(({ deserted }) => deserted)?.state;
  }

  /**
   * Returns the earliest time at which a pod may be evicted, in its current state. The observer looked at its node at `lookedAt`
   * and saw that state. `undefined`: never. `key`: by a taint of that key alone.
   */
  mayGo(uid: PodUid, seen: number, readAt: EpochMs, key?: string): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const start = (patient: boolean): Start => this.#lenientStart(pod.node, readAt, patient);
    const inForce = this.#terms.filter(
      (_, index) => (this.#terms[index + 1]?.at ?? Infinity) >= readAt - TERMS_AGE_MS,
    );
    const moments = this.#candidates(pod.node, seen, readAt).flatMap((past) => {
      // The time when a relay saw the deletion of a node is the time that counts.
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

  /**
   * Returns the keys of the taints that may apply to pods, for an observer who looked at their node at `lookedAt` and saw that
   * state.
   */
  keysBy(name: NodeName, seen: number, readAt: EpochMs): readonly string[] {
    const taints = this.#candidates(name, seen, readAt).flatMap((past) => past.taints);
    return [...new Set(taints.map(({ key }) => key))];
  }

  /**
   * Returns the states that an observation may be judged by. For a deleted node these include states from before its deletion
   * that were reported by then.
   */
  #candidates(name: NodeName, seen: number, readAt: EpochMs): readonly NodePast[] {
    const past = this.#pastOf(name);
    const read = past.filter(({ state }) => state === seen);
    if (!read.some(({ deleted }) => deleted)) return read;
    const sent = past.findLast(
      ({ deleted, state }) => !deleted && this.knowledge.decidedBy(name, state, readAt),
    );
    const oldest = sent?.state ?? Math.min(seen, ...this.knowledge.perhapsSent(name, Infinity));
    return past.filter(({ state }) => state >= oldest && state <= seen);
  }

  /**
   * Returns the start of a countdown for an observer at that time. It starts when the taint was set last, or when it was set
   * before a flap that no relay reported. The list's stamp reveals a flap until a relay has reported the node's current state;
   * `patient`: the observer no longer waits for that.
   */
  #lenientStart(name: NodeName, readAt: EpochMs, patient: boolean): Start {
    const past = this.#pastOf(name);
    const newest = this.knowledge.perhapsSent(name, readAt);
    return (taint, seen) => {
      const hidden = past.some(({ state, stamp }) => newest.includes(state) && stamp === seen.stamp);
      const missed = (gap: readonly NodePast[]) => {
        // The report of a node's deletion contains no taints, except for taints that were forgotten with its last pod.
        const shown = gap.filter(({ deleted, deserted }) => !deleted || deserted);
        const sent = this.knowledge.sentAny(
          name,
          shown.map(({ state }) => state),
          readAt,
        );
        return !sent && (hidden || patient || seen.deleted);
      };
      return startOf(past, taint, seen, { missed, lenient: true });
    };
  }

  /**
   * Returns the time by which a pod must be evicted, in the current state, given all failures; `undefined`: it may stay.
   * `freedBy`: returns the time by which a due pod is released for a taint of that key; `undefined`: its eviction was never
   * forbidden.
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

  /** Returns the time by which a taint of that key must evict the pod. */
  #mustGoBy(uid: PodUid, key: string): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const node = this.#pastOf(pod.node).at(-1);
    const tolerations = pod.tolerations.at(-1);
    if (!node || !tolerations || this.isLost(uid)) return undefined;
    const excusedUntil = (at: EpochMs) => this.#disturbances.excusedUntil(this.#cluster, at);
    const past = this.#pastOf(pod.node);
    const start: Start = (taint) => {
      const recreatedAt = past.findLast((each, index) => !each.deleted && past[index - 1]?.deleted)?.at ?? 0;
      return excusedUntil(Math.max(startOf(past, taint, node, STRICT), recreatedAt, pod.podSince));
    };
    const terms = this.#termsNow;
    const deadline = this.#deadline(pod, node, start, terms, key);
    if (deadline === undefined) return undefined;
    const changes = [node.at, tolerations.at, pod.podSince, terms.at + TERMS_RECEIVED_MS];
    return excusedUntil(Math.max(deadline, ...changes.map(excusedUntil)));
  }

  /** Returns the earliest time at which a pod is evicted, in the current state; `undefined`: never. */
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
    { seconds: bySeconds }: Terms,
    key?: string,
  ): EpochMs | undefined {
    const tolerations = pod.tolerations.at(-1)?.tolerations ?? [];
    const ends = node.taints.flatMap((taint) => {
      if (key !== undefined && taint.key !== key) return [];
      const match = firstMatch(tolerations, taint, this.#options);
      if (match && match.tolerationSeconds === undefined) return [];
      const seconds = bySeconds[taint.key] ?? Math.max(0, Number(match?.tolerationSeconds ?? 0));
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

/** Returns the first time in the taints by which node controllers mark a node as down. */
function foundDownAt(taints: readonly LiveTaint[]): EpochMs | undefined {
  const found = taints.flatMap(({ key, timeAdded }) =>
    timeAdded !== undefined && DOWN_KEYS.includes(key) ? [timeAdded] : [],
  );
  return found.length > 0 ? Math.min(...found) : undefined;
}

/** The parameters for the start of a countdown. */
interface Reckoning {
  /** Reports whether the observer missed these states, including the absence of the taint in them. */
  missed(gap: readonly NodePast[]): boolean;
  /** True if a newly set taint starts its countdown at the time that it contains, and not when it was actually set. */
  readonly lenient: boolean;
}

const STRICT: Reckoning = { missed: () => false, lenient: false };

/** Returns the start of the countdown of a taint that a node has in a state. */
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
  for (const earlier of past.toReversed()) {
    if (earlier.state > seen.state) continue;
    if (earlier.taints.some((other) => countdownIdentity(other) === identity)) {
      if (gap.length > 0 && !missed(gap)) break;
      gap = [];
      // The taints of unreported states are unknown: the states around them are compared.
      if (!missed([earlier])) {
        const renewed = setAgain(taint, earlier, after, lenient);
        if (renewed !== undefined && !lenient) break;
        setAt = Math.max(setAt, renewed ?? 0);
        after = earlier;
      }
      since = earlier.at;
    } else {
      gap.push(earlier);
    }
  }
  return Math.max(since, Math.min(setAt, seen.at));
}

/** The time that a taint contains is truncated to the second. */
const CUT_MS = 999;

/**
 * Returns the time when the taint was set between two states, by the time that it contains: the end of that second, or when it
 * was seen. `undefined`: it was not set again, a taint with the same countdown existed throughout, or it was swapped for that
 * one. With `lenient`: also when it may not have been set.
 */
function setAgain(
  taint: LiveTaint,
  before: NodePast,
  after: NodePast,
  lenient: boolean,
): EpochMs | undefined {
  const identity = countdownIdentity(taint);
  const sameTaints = ({ taints }: NodePast) => taints.filter((each) => countdownIdentity(each) === identity);
  const [old, renewed] = [sameTaints(before), sameTaints(after)];
  const both = renewed.flatMap(({ key, timeAdded }) => {
    const same = old.find((each) => each.key === key);
    return same ? [{ stood: same.timeAdded === timeAdded, timeAdded }] : [];
  });
  // With two taints that share a countdown, one may be compared with the other.
  const sure = old.length === 1 && renewed.length === 1;
  if (both.some(({ stood }) => stood) || (lenient && !sure)) return undefined;
  const moments = both.flatMap(({ timeAdded }) => (timeAdded === undefined ? [] : [timeAdded]));
  return moments.length === 0 ? undefined : Math.min(Math.max(...moments) + CUT_MS, after.at);
}
