import { INT64_MAX } from './int64.ts';
import { firstMatch } from './match.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from './node-condition-keys.ts';
import type { MatchOptions, Taint, Toleration } from './taint.ts';

/** When a pod must have left its node. */
export interface Deadline<T> {
  /** Epoch milliseconds, exact; may lie beyond every JavaScript date (see {@link saturate}). */
  readonly atMs: bigint;
  /** All taints that set this moment, in the node's order. */
  readonly because: readonly T[];
}

/** A taint, and since when (epoch ms, whole) it is on the node. */
type StandingTaint = Taint & { readonly since: number };

/** A NoExecute taint that a pod does not tolerate for ever. */
interface Limit<T> {
  readonly taint: T;
  readonly toleratedMs: bigint;
}

/** The latest moment a JavaScript date can hold. */
const MAX_DATE_MS = 8_640_000_000_000_000n;

/**
 * When a pod with these tolerations, on the node since `podSince` (epoch ms, whole), must go: the minimum over
 * the NoExecute taints of `max(taint.since, podSince) + tolerationSeconds`, where the first matching toleration
 * of the list counts, and no match counts as zero seconds. `undefined`: never.
 */
export function deadline<T extends StandingTaint>(
  tolerations: readonly Toleration[],
  taints: readonly T[],
  podSince: number,
  options: MatchOptions,
): Deadline<T> | undefined {
  return deadlineFor(taints, options)(tolerations, podSince);
}

/**
 * {@link deadline} for many pods of one node. A toleration list is matched once, however many pods share the
 * object.
 */
export function deadlineFor<T extends StandingTaint>(
  taints: readonly T[],
  options: MatchOptions,
): (tolerations: readonly Toleration[], podSince: number) => Deadline<T> | undefined {
  const evicting = taints.filter((taint) => taint.effect === 'NoExecute');
  const known = new WeakMap<readonly Toleration[], readonly Limit<T>[]>();
  return (tolerations, podSince) => {
    const limits = known.get(tolerations) ?? limitsOf(tolerations, evicting, options);
    known.set(tolerations, limits);
    return earliest(limits, podSince);
  };
}

function limitsOf<T extends Taint>(
  tolerations: readonly Toleration[],
  taints: readonly T[],
  options: MatchOptions,
): readonly Limit<T>[] {
  const limits: Limit<T>[] = [];
  for (const taint of taints) {
    const seconds = toleratedSeconds(firstMatch(tolerations, taint, options));
    if (seconds !== undefined) limits.push({ taint, toleratedMs: seconds * 1000n });
  }
  return limits;
}

/** `undefined`: for ever, as upstream reads an absent `tolerationSeconds` and exactly the largest int64. */
function toleratedSeconds(match: Toleration | undefined): bigint | undefined {
  if (!match) return 0n;
  const seconds = match.tolerationSeconds;
  if (seconds === undefined || seconds === INT64_MAX) return undefined;
  return seconds > 0n ? seconds : 0n;
}

function earliest<T extends StandingTaint>(
  limits: readonly Limit<T>[],
  podSince: number,
): Deadline<T> | undefined {
  let atMs: bigint | undefined;
  let because: T[] = [];
  for (const { taint, toleratedMs } of limits) {
    const endMs = BigInt(Math.max(taint.since, podSince)) + toleratedMs;
    if (atMs === undefined || endMs < atMs) {
      atMs = endMs;
      because = [taint];
    } else if (endMs === atMs) {
      because.push(taint);
    }
  }
  return atMs === undefined ? undefined : { atMs, because };
}

/** A moment as a number, cut to the range of JavaScript dates (275,760 years either way). */
export function saturate(atMs: bigint): number {
  if (atMs > MAX_DATE_MS) return Number(MAX_DATE_MS);
  if (atMs < -MAX_DATE_MS) return Number(-MAX_DATE_MS);
  return Number(atMs);
}

/**
 * What makes two taints one countdown: key and effect; a new value is the same taint. The node controller swaps
 * not-ready for unreachable and back while a node is down, so these two are one.
 */
export function countdownIdentity(taint: Taint): string {
  const down = taint.effect === 'NoExecute' && taint.key === NODE_UNREACHABLE;
  return `${down ? NODE_NOT_READY : taint.key}:${taint.effect}`;
}
