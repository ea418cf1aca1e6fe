import type { NodeMoment, PodLife } from './witness.ts';

/** The watches of nodes and of pods deliver their events in no common order. */
const WATCH_SLACK_MS = 250;

/** A period in which a node had a NoExecute taint; without an end: the node still has the taint. */
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

/** The relation of a taint to a pod's eviction. */
export type Exposure =
  /** The node had the taint; `afterMs` counts from when the pod was first on the tainted node. */
  | { readonly kind: 'while tainted'; readonly afterMs: number }
  | { readonly kind: 'after untaint'; readonly afterMs: number }
  | { readonly kind: 'never tainted' };

/** Classifies a pod's eviction at `evictedAt` by the times in which its node was tainted. */
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
