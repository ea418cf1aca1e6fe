import type { NodeMoment, PodLife } from './witness.ts';

/** Nodes and pods come by two watches in no common order. */
const WATCH_SLACK_MS = 250;

/** A time during which a node had a NoExecute taint; without an end: it still has. */
export interface TaintedTime {
  readonly startAt: number;
  readonly endAt?: number;
}

export function taintedTimes(moments: readonly NodeMoment[]): readonly TaintedTime[] {
  const times: { startAt: number; endAt?: number }[] = [];
  for (const { at, taints } of moments) {
    const open = times.at(-1)?.endAt === undefined ? times.at(-1) : undefined;
    if (taints.length > 0 && !open) times.push({ startAt: at });
    if (taints.length === 0 && open) open.endAt = at;
  }
  return times;
}

/** What a taint had to do with a pod's eviction. */
export type Exposure =
  /** It was there; the pod went this long after it was first on the tainted node. */
  | { readonly kind: 'while tainted'; readonly afterMs: number }
  | { readonly kind: 'after untaint'; readonly afterMs: number }
  | { readonly kind: 'never tainted' };

/** Whether a taint justified a pod's eviction at `evictedAt`. */
export function exposure(pod: PodLife, evictedAt: number, times: readonly TaintedTime[]): Exposure {
  const met = times.filter(
    ({ startAt, endAt = evictedAt }) =>
      startAt - WATCH_SLACK_MS <= evictedAt && endAt + WATCH_SLACK_MS >= pod.seenAt,
  );
  const last = met.at(-1);
  if (!last) return { kind: 'never tainted' };
  const { startAt, endAt = evictedAt } = last;
  return endAt + WATCH_SLACK_MS >= evictedAt
    ? { kind: 'while tainted', afterMs: Math.max(0, evictedAt - Math.max(startAt, pod.seenAt)) }
    : { kind: 'after untaint', afterMs: evictedAt - endAt };
}
