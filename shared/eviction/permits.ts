import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Owner, PodTraits } from './facts.ts';
import type { PodUid } from './identity.ts';

/** A limit: within any time span of `windowMs`, at most `count` pods of a workload are evicted. */
export interface PermitLimit {
  readonly count: number;
  readonly windowMs: number;
}

export interface Permit {
  readonly uid: PodUid;
  readonly at: EpochMs;
}

/** Longest time between permit and delete. A permit counts for this much longer than the window. */
export const PERMIT_LASTS_MS = 10_000;

export interface Granted {
  /** Permits that count. Other stored permits may be deleted. */
  readonly permits: readonly Permit[];
  /** For each pod that asks, in order: `now` if it has a permit, or the time at which it may ask again. */
  readonly moments: readonly EpochMs[];
}

/** Gives permits beyond those `held`. A permitted pod that asks again was not evicted: its permit is renewed. */
export function grantPermits(
  held: readonly Permit[],
  pods: readonly PodUid[],
  limit: PermitLimit,
  now: EpochMs,
): Granted {
  const asking = new Set(pods);
  const counting = held.filter((permit) => counts(permit, limit, now));
  const own = new Set(counting.filter(({ uid }) => asking.has(uid)).map(({ uid }) => uid));
  const free = Math.max(0, limit.count - (counting.length - own.size));
  const granted = new Set([...own, ...asking].slice(0, free));
  const permits = [
    ...counting.filter(({ uid }) => !granted.has(uid)),
    ...[...granted].map((uid) => ({ uid, at: now })),
  ];
  // The permits that lapse first free one permit each. Further pods ask when the last permit lapses.
  const lapses = permits.map(({ at }) => lapseOf(at, limit)).sort((a, b) => a - b);
  let denied = 0;
  const moments = pods.map((uid) => {
    if (granted.has(uid)) return now;
    return lapses[Math.min(denied++, lapses.length - 1)] ?? lapseOf(now, limit);
  });
  return { permits, moments };
}

/** Reports whether a permit still counts. A permit does not count if the clock was set back since it was taken. */
export const counts = ({ at }: Permit, limit: PermitLimit, now: EpochMs): boolean =>
  lapseOf(at, limit) > now && lapseOf(now, limit) > at;

const lapseOf = (at: EpochMs, { windowMs }: PermitLimit): EpochMs => at + windowMs + PERMIT_LASTS_MS;

/** The label by which a Deployment distinguishes its ReplicaSets. The names of ReplicaSets end with its value. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * The pod's controller, or the Deployment behind it, so that a rollout has no separate limit; `undefined`: none.
 * Upstream: `getNewReplicaSet` of the Deployment controller.
 */
export function workloadOf({ owner, labels = {} }: Pick<PodTraits, 'owner' | 'labels'>): Owner | undefined {
  const suffix = `-${labels[TEMPLATE_HASH]}`;
  if (owner?.kind !== 'ReplicaSet' || !owner.name.endsWith(suffix)) return owner;
  return { kind: 'Deployment', name: owner.name.slice(0, -suffix.length) };
}

/** A number, or a percentage of the replicas, rounded up: at least one pod, even if the replicas are unknown. */
export const permitted = (count: number | string, replicas = 0): number =>
  typeof count === 'number' ? count : Math.max(1, Math.ceil((Number.parseInt(count, 10) * replicas) / 100));
