import { dueAt, type Taint, type Toleration } from '#test/naive/rule.ts';

/** An interval with both ends included. */
export interface Time {
  readonly from: number;
  readonly to: number;
}

/** A change at a time between its request and its observation. */
interface Turn {
  readonly requestedAt: number;
  readonly seenAt: number;
}

export interface NodeTurn extends Turn {
  readonly taints: readonly Taint[];
}

export interface PodTurn extends Turn {
  readonly tolerations: readonly Toleration[];
}

/** One pod (one UID). Its first turn is its creation, bound to its node. */
export interface JudgedPod {
  readonly uid: string;
  readonly name: string;
  readonly node: string;
  readonly turns: readonly PodTurn[];
  /** The time at which its end was first seen. */
  readonly leftAt?: number | undefined;
  /** The harness deleted it, as users do. */
  readonly deletedByPeople: boolean;
}

/** A delete that the service sent, as recorded by the proxy. */
export interface SentDelete {
  readonly uid: string;
  /** The oldest state of its node on which it may be based. */
  readonly readAt: number;
  /** The time at which it reached the proxy: it is based on nothing later, regardless of its further transit time. */
  readonly sentAt: number;
  /** The age of the last read of its node; `undefined`: there was none. */
  readonly readAgeMs: number | undefined;
  /** The API server's status; `undefined`: unknown, because the connection was cut. */
  readonly status: number | undefined;
}

/** All events until `endAt`. Times are epoch ms of one clock. */
export interface History {
  readonly nodes: ReadonlyMap<string, readonly NodeTurn[]>;
  readonly pods: readonly JudgedPod[];
  readonly deletes: readonly SentDelete[];
  readonly endAt: number;
}

/** A pod with which the service violated the rule. */
export interface Violation {
  readonly kind: 'lost' | 'wrong' | 'early' | 'doubled';
  readonly pod: string;
  readonly node: string;
  readonly why: string;
}

export interface Findings {
  readonly evictions: number;
  readonly violations: readonly Violation[];
  /** The delay of each eviction, from the latest possible deadline of its pod to its observed end. */
  readonly delayMs: readonly number[];
  /** The time for which pods were due whose taint was removed or whose tolerations changed. */
  readonly savedAfterMs: readonly number[];
  /** The age of the last read, for each delete that may have caused an eviction. */
  readonly readAgeMs: readonly number[];
}

/** The watches of nodes and of pods deliver their events in no common order. */
const TWO_WATCHES_MS = 250;

/** An interval without changes of a node's taints and a pod's tolerations, with the pod's deadline. */
interface Stretch extends Time {
  readonly dueAt: number;
}

/**
 * Compares the ends of pods with the naive rule. Where a time is known only as an interval, the service has the benefit
 * of the doubt, so reported violations are certain.
 */
export function judge({ nodes, pods, deletes, endAt }: History): Findings {
  const violations: Violation[] = [];
  const delayMs: number[] = [];
  const savedAfterMs: number[] = [];
  const readAgeMs: number[] = [];
  const sent = Map.groupBy(deletes, ({ uid }) => uid);
  let evictions = 0;
  for (const pod of pods) {
    const turns = nodes.get(pod.node) ?? [];
    const mine = sent.get(pod.uid) ?? [];
    const accepted = mine.filter(isAccepted);
    const add = (kind: Violation['kind'], why: string) =>
      violations.push({ kind, pod: `${pod.name} (${pod.uid})`, node: pod.node, why });
    if (accepted.length > 1) add('doubled', `the API server took ${accepted.length} deletes of it`);

    const overdue = overdueTimes(turns, pod, endAt);
    const last = overdue.at(-1);
    const until = pod.leftAt ?? endAt;
    const current = last && last.to >= until - TWO_WATCHES_MS ? last : undefined;
    if (pod.leftAt === undefined) {
      if (current) add('lost', `it is there ${seconds(endAt - current.from)} after it was due`);
    } else {
      const before = mine.filter(({ sentAt }) => sentAt <= until);
      if (before.some(isAccepted) || !pod.deletedByPeople) {
        evictions += 1;
        const possible = before.filter(({ status = 200 }) => status < 300);
        readAgeMs.push(...possible.map((each) => each.readAgeMs ?? Infinity));
        const wrong = misdeed(possibly(turns, pod, endAt), possible);
        if (wrong) add(wrong.kind, wrong.why);
        delayMs.push(current ? until - current.from : 0);
      }
    }
    savedAfterMs.push(...overdue.filter((each) => each !== current).map(({ from, to }) => to - from));
  }
  return { evictions, violations, delayMs, savedAfterMs, readAgeMs };
}

/** Returns the deadline of each existing pod, by the last observed state; `Infinity`: there is none. */
export const deadlinesOf = ({
  nodes,
  pods,
  endAt,
}: Pick<History, 'nodes' | 'pods' | 'endAt'>): readonly number[] =>
  pods
    .filter(({ leftAt }) => leftAt === undefined)
    .map((pod) => {
      const last = stretchesOf(nodes.get(pod.node) ?? [], pod, { begin: 'seenAt', end: 'seenAt' }, endAt).at(
        -1,
      );
      return last ? Math.max(last.from, last.dueAt) : Infinity;
    });

const isAccepted = ({ status = 0 }: SentDelete): boolean => status >= 200 && status < 300;

/** Returns the violation of an eviction that one of these deletes caused; `undefined`: one of them was right. */
function misdeed(
  stretches: readonly Stretch[],
  deletes: readonly SentDelete[],
): Pick<Violation, 'kind' | 'why'> | undefined {
  const misdeeds = deletes.map((sent) => misdeedOf(stretches, { from: sent.readAt, to: sent.sentAt }));
  if (misdeeds.length === 0) return { kind: 'wrong', why: 'it went, and nobody was seen to delete it' };
  return misdeeds.includes(undefined) ? undefined : misdeeds[0];
}

/**
 * Returns the violation of a delete that is based on this time, by the stretches in which its pod may have had a
 * deadline; `undefined`: there is none.
 */
function misdeedOf(
  stretches: readonly Stretch[],
  { from, to }: Time,
): Pick<Violation, 'kind' | 'why'> | undefined {
  const near = stretches.filter((each) => each.from <= to && each.to >= from);
  if (near.some((each) => each.dueAt <= Math.min(to, each.to))) return undefined;
  const due = Math.min(...near.map((each) => each.dueAt));
  if (due === Infinity) {
    const last = stretches.filter((each) => each.dueAt <= each.to && each.to < from).at(-1);
    const before = last ? `; it had been due until ${seconds(from - last.to)} before` : '';
    return { kind: 'wrong', why: `nothing called for that${before}` };
  }
  return { kind: 'early', why: `it was deleted ${seconds(due - to)} before it can have been due` };
}

/**
 * Returns the times in which a pod was due by the observations, with the latest possible deadlines. Adjacent times are
 * joined.
 */
function overdueTimes(turns: readonly NodeTurn[], pod: JudgedPod, endAt: number): readonly Time[] {
  const until = pod.leftAt ?? endAt;
  const due = stretchesOf(turns, pod, { begin: 'seenAt', end: 'seenAt' }, until)
    .map((each) => ({ from: Math.max(each.from, each.dueAt), to: each.to }))
    .filter(({ from, to }) => from < to)
    .toSorted((a, b) => a.from - b.from);
  const joined: Time[] = [];
  for (const misdeeds of due) {
    const before = joined.at(-1);
    if (before && misdeeds.from <= before.to)
      joined[joined.length - 1] = { from: before.from, to: misdeeds.to };
    else joined.push(misdeeds);
  }
  return joined;
}

/** Returns the stretches in which a pod may have had a deadline, with the earliest possible deadlines. */
const possibly = (turns: readonly NodeTurn[], pod: JudgedPod, endAt: number): readonly Stretch[] =>
  stretchesOf(turns, pod, { begin: 'requestedAt', end: 'seenAt' }, endAt);

/** The times of changes at which stretches begin and end. */
interface Reading {
  readonly begin: keyof Turn;
  readonly end: keyof Turn;
}

function stretchesOf(
  nodeTurns: readonly NodeTurn[],
  pod: JudgedPod,
  { begin, end }: Reading,
  until: number,
): readonly Stretch[] {
  const born = pod.turns[0]?.[begin] ?? until;
  const since = new Map<string, number>();
  return nodeTurns.flatMap((turn, index) => {
    const sinceOf = ({ key, effect }: Taint) => since.get(`${key}:${effect}`);
    const present = turn.taints.map((taint) => ({ ...taint, since: sinceOf(taint) ?? turn[begin] }));
    since.clear();
    for (const taint of present) since.set(`${taint.key}:${taint.effect}`, taint.since);
    const tainted = { from: turn[begin], to: nodeTurns[index + 1]?.[end] ?? until };
    return pod.turns.flatMap((borne, nth) => {
      const tolerated = { from: borne[begin], to: pod.turns[nth + 1]?.[end] ?? until };
      const from = Math.max(tainted.from, tolerated.from);
      const to = Math.min(tainted.to, tolerated.to, until);
      if (from > to) return [];
      const due = dueAt({ since: born, tolerations: borne.tolerations }, present);
      return [{ from, to, dueAt: due }];
    });
  });
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;
