import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';

/** So many pods of a workload are evicted within any span of time of that length. */
export interface PermitLimit {
  readonly count: number;
  readonly windowMs: number;
}

/** A pod has been permitted to be evicted since then. */
export interface Permit {
  readonly uid: PodUid;
  readonly at: EpochMs;
}

/** A delete is sent so long after its permit was taken at the latest, and the permit counts for as much longer. */
export const PERMIT_LASTS_MS = 10_000;

/** Permits of one workload, as they stand after some were asked for. */
export interface Granted {
  /** Those that count; what else is stored may be forgotten. */
  readonly permits: readonly Permit[];
  /** For each pod that asks, in order: `now`, where it has a permit, or when it may ask again. */
  readonly moments: readonly EpochMs[];
}

/**
 * Gives permits to pods of a workload of which these are `held`. A pod that has one and asks again was not evicted: it takes the same one anew, and uses
 * up no other.
 */
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
  // Those that lapse first free a permit each; with the last of them all others ask.
  const lapses = permits.map(({ at }) => lapseOf(at, limit)).sort((a, b) => a - b);
  let denied = 0;
  const moments = pods.map((uid) => {
    if (granted.has(uid)) return now;
    return lapses[Math.min(denied++, lapses.length - 1)] ?? lapseOf(now, limit);
  });
  return { permits, moments };
}

/** Whether a permit still counts. One of a clock that was set back since does not. */
export const counts = ({ at }: Permit, limit: PermitLimit, now: EpochMs): boolean =>
  lapseOf(at, limit) > now && lapseOf(now, limit) > at;

const lapseOf = (at: EpochMs, { windowMs }: PermitLimit): EpochMs => at + windowMs + PERMIT_LASTS_MS;

/** What runs a pod, in its namespace. */
export interface Workload {
  readonly kind: string;
  readonly name: string;
}

/** The label by which a Deployment tells its ReplicaSets apart, whose names end with it. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * The workload whose limit a pod counts for: the controller that made it, or the Deployment behind that, so that a rollout has no limit
 * of its own. `undefined`: nobody made it. Upstream: `getNewReplicaSet` of the Deployment controller.
 */
export function workloadOf({
  owner,
  labels = {},
}: {
  readonly owner?: Workload;
  readonly labels?: Readonly<Record<string, string>>;
}): Workload | undefined {
  const suffix = `-${labels[TEMPLATE_HASH]}`;
  if (owner?.kind !== 'ReplicaSet' || !owner.name.endsWith(suffix)) return owner;
  return { kind: 'Deployment', name: owner.name.slice(0, -suffix.length) };
}

/** How many pods of a workload a policy permits: so many, or so much of its replicas, rounded up; one at least, and of as many as nobody knows. */
export const permitted = (count: number | string, replicas = 0): number =>
  typeof count === 'number' ? count : Math.max(1, Math.ceil((Number.parseInt(count, 10) * replicas) / 100));
