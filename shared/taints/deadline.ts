import { INT64_MAX } from './int64.ts';
import { tolerates } from './match.ts';
import {
  evicts,
  type LiveTaint,
  type MatchOptions,
  NODE_NOT_READY,
  NODE_UNREACHABLE,
  type Taint,
  type Toleration,
} from './taint.ts';
import { asExecuting, stays } from './virtual.ts';

/** The time by which a pod must be evicted from its node. */
export interface Deadline<T> {
  /** Epoch milliseconds, exact; may lie beyond every JavaScript date (see {@link saturate}). */
  readonly atMs: bigint;
  /** All taints that set this deadline, in the node's order. */
  readonly because: readonly DeadlineCause<T>[];
}

export interface DeadlineCause<T> {
  readonly taint: T;
  /** Index of the deciding toleration in the pod's list; absent: no toleration matches the taint. */
  readonly toleration?: number;
  /** Seconds for which the taint is tolerated; 0 or more. */
  readonly seconds: bigint;
  /** The setting that changed the seconds; absent: they are as node and pod specify. */
  readonly policy?: 'treatAsNoExecute' | 'tolerationSecondsOverrides';
}

/** Seconds by taint key that replace those of pods. A pod that tolerates a taint indefinitely still does. */
export type SecondsByKey = Readonly<Record<string, number>>;

/** A taint, with the time (epoch ms, whole) since which it is on the node. */
type TimedTaint = Taint & { readonly since: number };

/** The latest time that a JavaScript date can hold. */
const MAX_DATE_MS = 8_640_000_000_000_000n;

/**
 * Returns when a pod with these tolerations, on the node since `podSince` (epoch ms, whole), must be evicted;
 * `undefined`: never. The deadline is the minimum over the evicting taints of `max(taint.since, podSince) +
 * tolerationSeconds`. The first matching toleration of the list counts, and no match counts as zero seconds.
 *
 * A virtual taint is matched as if it were NoExecute. A pod without a match stays if it tolerates the taint as
 * NoSchedule.
 */
export function deadline<T extends TimedTaint>(
  tolerations: readonly Toleration[],
  taints: readonly T[],
  podSince: number,
  options: MatchOptions,
  secondsByKey: SecondsByKey = {},
): Deadline<T> | undefined {
  return deadlineFor(taints, options, secondsByKey)(tolerations, podSince);
}

/**
 * {@link deadline} for many pods of one node. A shared list is matched once; its pods from before the taints share one
 * deadline object.
 */
export function deadlineFor<T extends TimedTaint>(
  taints: readonly T[],
  options: MatchOptions,
  secondsByKey: SecondsByKey = {},
): (tolerations: readonly Toleration[], podSince: number) => Deadline<T> | undefined {
  const evicting = taints.filter(evicts).map((taint) => ({ taint, executing: asExecuting(taint) }));
  const known = new Map<readonly Toleration[], Limits<T>>();
  return (tolerations, podSince) => {
    let limits = known.get(tolerations);
    if (!limits) {
      const causes = limitsOf(tolerations, evicting, options, secondsByKey);
      let from = Number.POSITIVE_INFINITY;
      for (const { taint } of causes) from = Math.min(from, taint.since);
      limits = { causes, from, latest: earliest(causes, from) };
      known.set(tolerations, limits);
    }
    return podSince <= limits.from ? limits.latest : earliest(limits.causes, podSince);
  };
}

interface Limits<T> {
  /** The taints that the list doesn't tolerate indefinitely. */
  readonly causes: readonly DeadlineCause<T>[];
  /** Since when the oldest of these taints is there. */
  readonly from: number;
  /** The deadline of pods that are there since then, or longer. */
  readonly latest: Deadline<T> | undefined;
}

function limitsOf<T extends Taint>(
  tolerations: readonly Toleration[],
  taints: readonly { readonly taint: T; readonly executing: Taint }[],
  options: MatchOptions,
  secondsByKey: SecondsByKey,
): readonly DeadlineCause<T>[] {
  const limits: DeadlineCause<T>[] = [];
  for (const { taint, executing } of taints) {
    const at = tolerations.findIndex((toleration) => tolerates(executing, toleration, options));
    const match = tolerations[at];
    if (!match && stays(taint, tolerations, options)) continue;
    const limit = limitOf(taint, match, secondsByKey);
    if (limit) limits.push(match ? { taint, toleration: match.index ?? at, ...limit } : { taint, ...limit });
  }
  return limits;
}

/** Returns the tolerated time, and the setting that changed it; `undefined`: indefinitely. */
function limitOf(
  { key, virtual }: Taint,
  match: Toleration | undefined,
  secondsByKey: SecondsByKey,
): Pick<DeadlineCause<Taint>, 'seconds' | 'policy'> | undefined {
  const own = toleratedSeconds(match);
  if (own === undefined) return undefined;
  const ruled = Object.hasOwn(secondsByKey, key) ? BigInt(secondsByKey[key] ?? 0) : own;
  if (ruled !== own) return { seconds: ruled, policy: 'tolerationSecondsOverrides' };
  return virtual ? { seconds: own, policy: 'treatAsNoExecute' } : { seconds: own };
}

/** `undefined`: indefinitely, as upstream reads an absent `tolerationSeconds` and exactly the largest int64. */
function toleratedSeconds(match: Toleration | undefined): bigint | undefined {
  if (!match) return 0n;
  const seconds = match.tolerationSeconds;
  if (seconds === undefined || seconds === INT64_MAX) return undefined;
  return seconds > 0n ? seconds : 0n;
}

function earliest<T extends TimedTaint>(
  limits: readonly DeadlineCause<T>[],
  podSince: number,
): Deadline<T> | undefined {
  let first: { readonly atMs: bigint; readonly because: DeadlineCause<T>[] } | undefined;
  for (const limit of limits) {
    const atMs = BigInt(Math.max(limit.taint.since, podSince)) + limit.seconds * 1000n;
    if (first === undefined || atMs < first.atMs) first = { atMs, because: [limit] };
    else if (atMs === first.atMs) first.because.push(limit);
  }
  return first;
}

/** Returns a time as a number, cut to the range of JavaScript dates (275,760 years either way). */
export function saturate(atMs: bigint): number {
  if (atMs > MAX_DATE_MS) return Number(MAX_DATE_MS);
  if (atMs < -MAX_DATE_MS) return Number(-MAX_DATE_MS);
  return Number(atMs);
}

/**
 * Key and effect. A new value keeps the countdown, and so does the NoExecute taint after a virtual one. The node
 * controller swaps not-ready and unreachable while a node is down: they have one countdown.
 */
export function countdownIdentity(taint: Taint): string {
  const evicting = evicts(taint);
  const down = evicting && taint.key === NODE_UNREACHABLE;
  return `${down ? NODE_NOT_READY : taint.key}:${evicting ? 'NoExecute' : taint.effect}`;
}

/**
 * Finds the taint of `before` whose countdown a taint continues: the same one, or else the one that it was swapped for
 * or follows; `undefined`: a new countdown. Each is looked at once, however many a server shows.
 */
export function countdownsOf<T extends Taint>(before: readonly T[]): (taint: Taint) => T | undefined {
  // The first of several taints counts.
  const newestFirst = before.toReversed();
  const own = new Map(newestFirst.map((each) => [ownIdentity(each), each]));
  const same = new Map(newestFirst.map((each) => [countdownIdentity(each), each]));
  return (taint) => own.get(ownIdentity(taint)) ?? same.get(countdownIdentity(taint));
}

/**
 * When a taint of `after` was set again since `before`: its `timeAdded` differs under the same key and effect;
 * `undefined`: it was not. Keys aren't compared: the node controllers swap not-ready and unreachable, and while one
 * remains, the node is down all the time. NoExecute and the virtual taint beside it have one time (`evictingTaints`).
 */
export function setAgainSince(
  before: readonly LiveTaint[],
  after: readonly LiveTaint[],
): (taint: LiveTaint) => number | undefined {
  const newestFirst = before.toReversed();
  const own = new Map(newestFirst.map((each) => [ownIdentity(each), each]));
  const ofKey = new Map(newestFirst.map((each) => [each.key, each]));
  const stood = after.filter((taint) => {
    const same = own.get(ownIdentity(taint));
    return !taint.virtual && same !== undefined && same.timeAdded === taint.timeAdded;
  });
  const through = new Set(stood.map(countdownIdentity));
  return (taint) => {
    const same = own.get(ownIdentity(taint)) ?? ofKey.get(taint.key);
    if (!same || through.has(countdownIdentity(taint))) return undefined;
    return taint.timeAdded === same.timeAdded ? undefined : taint.timeAdded;
  };
}

const ownIdentity = ({ key, effect }: Taint): string => `${key}:${effect}`;
