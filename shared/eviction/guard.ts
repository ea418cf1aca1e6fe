import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { GuardPolicy, ReleasedTrip, Threshold, Trip } from './policy.ts';

/** How long the affected nodes must be fewer than half of the limit before the guard resets. */
export const CALM_MS = 5 * 60_000;

export interface Affected {
  readonly nodes: number;
  readonly outOf: number;
}

export interface GuardCounts {
  /** Nodes of the cluster that are down now. */
  readonly cluster: Affected;
  /** Nodes of each zone that are down now. A zone that is missing here has none. */
  readonly zones: ReadonlyMap<string, Affected>;
  /** Nodes of the cluster with a NoExecute taint that another actor than the node controller set recently. */
  readonly customTaints: Affected;
}

/**
 * The time since a scope reached its limit. It ends after five minutes below half of the limit. `told`: the guard only
 * logged that it would have tripped.
 */
export interface Episode {
  readonly kind: 'held' | 'released' | 'told';
  readonly trip: Trip;
  /** Stopwatch time since which fewer than half of the limit are affected; absent: they are not. */
  readonly calmSince?: number;
}

export interface Guarded {
  readonly trips: readonly Trip[];
  readonly released: readonly ReleasedTrip[];
  /** Empty: the review starts from the trips alone. */
  readonly episodes: readonly Episode[];
}

/** The changes that a review of a cluster's guard requires, and the state after them. */
export interface GuardReview extends Guarded {
  readonly added: readonly Trip[];
  /** In shadow mode: trips that would be `added`. Each one is logged once. */
  readonly wouldTrip: readonly Trip[];
}

interface Watched {
  readonly of: Pick<Trip, 'scope' | 'zone'>;
  readonly affected: Affected;
  /** Number of affected nodes from which the scope trips. */
  readonly limit: number;
}

/** How far an active trip is from its reset. */
export interface ReportedProgress extends Pick<Trip, 'scope' | 'zone' | 'trippedAt'> {
  readonly affectedNow: number;
  /** The trip resets five minutes after fewer nodes than this are affected. */
  readonly resetsBelow: number;
  /** Time at which the trip resets if the number stays below `resetsBelow`. Absent: it is not below. */
  readonly resetsAt?: EpochMs;
}

/** A trip as programs read it: in logs, `-o json`, and the console API. The progress is absent if it is not known. */
export interface TripReport extends Omit<Trip, 'outOf'>, Partial<Omit<ReportedProgress, keyof Trip>> {
  /** Number of all nodes at the trip. */
  readonly total: number;
}

/** Adds the progress that a relay reported of this very trip, not of an earlier one. */
export const reportOf = (trip: Trip, progress: readonly ReportedProgress[] = []): TripReport => {
  const { outOf: total, ...rest } = trip;
  const found = progress.find((each) => isSame(each, trip) && each.trippedAt === trip.trippedAt);
  return { ...rest, total, ...found };
};

export function tripText({ scope, zone, nodes, total }: Omit<TripReport, 'trippedAt'>): string {
  const what = scope === 'customTaints' ? 'with custom taints' : 'down';
  return `${nodes} of ${total} nodes ${what}${zone === undefined ? '' : ` in zone ${zone}`}`;
}

/** Returns the trips of scopes that policy watches. A review ends the others. */
export const watchedTrips = (policy: GuardPolicy, trips: readonly Trip[]): readonly Trip[] =>
  policy.dryRun ? [] : trips.filter(({ scope }) => policy[scope] !== undefined);

/**
 * Decides by the number of affected nodes which trips the guard has at `now`.
 *
 * A scope trips when its percentage and its number of nodes are reached. The cluster also trips when all of its nodes
 * are down, however few. A zone does not: if each node had its own zone, one failed node would trip it. A trip that
 * is missing was released by an operator. Its scope trips again only when more nodes are affected than at the
 * release, or after a recovery. Scopes that policy does not watch, or watches only in shadow mode, have no trips.
 * `stopwatchMs` measures the recovery time, because the clock behind `now` may be set.
 */
export function reviewGuard(
  policy: GuardPolicy,
  counts: GuardCounts,
  { trips, released, episodes }: Guarded,
  now: EpochMs,
  stopwatchMs: number = now,
): GuardReview {
  const time = { now, stopwatchMs };
  const known = [...trips, ...released, ...episodes.map(({ trip }) => trip)];
  const outcomes = watchedBy(policy, counts, known).map((watched): Outcome => {
    const isOfThis = (trip: Trip) => isSame(trip, watched.of);
    const last = episodes.find(({ trip }) => isOfThis(trip));
    if (policy.dryRun) return shadowed(last, watched, time);
    const trip = trips.find(isOfThis);
    return trip
      ? continued(trip, last, watched, time)
      : notTripped(released.find(isOfThis), last, watched, time);
  });
  const kept = outcomes.flatMap(({ kept }) => kept ?? []);
  const added = outcomes.flatMap(({ added }) => added ?? []);
  return {
    trips: [...kept, ...added],
    released: outcomes.flatMap(({ released }) => released ?? []),
    added,
    wouldTrip: outcomes.flatMap(({ wouldTrip }) => wouldTrip ?? []),
    episodes: outcomes.flatMap(({ episode }) => episode ?? []),
  };
}

/** Returns the progress of the active trips, by the current counts. Trips of scopes that policy does not watch have none. */
export const progressOf = (
  policy: GuardPolicy,
  counts: GuardCounts,
  { trips, episodes }: Pick<Guarded, 'trips' | 'episodes'>,
  now: EpochMs,
  stopwatchMs: number = now,
): readonly ReportedProgress[] =>
  watchedBy(policy, counts, trips).flatMap((watched) => {
    const trip = trips.find((each) => isSame(each, watched.of));
    if (!trip) return [];
    const { calmSince } = episodes.find((each) => isSame(each.trip, trip)) ?? {};
    return {
      ...watched.of,
      trippedAt: trip.trippedAt,
      affectedNow: watched.affected.nodes,
      resetsBelow: Math.max(1, Math.ceil(watched.limit / 2)),
      ...(calmSince === undefined || !isCalm(watched)
        ? {}
        : { resetsAt: Math.round(now + CALM_MS - (stopwatchMs - calmSince)) }),
    };
  });

/** A time in which the number of affected nodes was unknown does not count as recovery. */
export const unreported = (episodes: readonly Episode[]): readonly Episode[] =>
  episodes.map(({ calmSince: _calmSince, ...episode }) => episode);

interface ReviewTime {
  readonly now: EpochMs;
  readonly stopwatchMs: number;
}

interface Outcome {
  readonly kept?: Trip;
  readonly added?: Trip;
  readonly released?: ReleasedTrip;
  readonly wouldTrip?: Trip;
  readonly episode?: Episode;
}

function continued(trip: Trip, last: Episode | undefined, watched: Watched, time: ReviewTime): Outcome {
  const episode = goOn('held', trip, last, watched, time);
  return episode ? { kept: trip, episode } : {};
}

function notTripped(
  known: ReleasedTrip | undefined,
  last: Episode | undefined,
  watched: Watched,
  time: ReviewTime,
): Outcome {
  const { of: trip, affected } = watched;
  // The operator who has just released the trip saw these nodes.
  const isNew = known === undefined && last !== undefined && last.kind !== 'told' && isReached(watched);
  const released = isNew ? { ...last.trip, upTo: affected.nodes } : known;
  const episode = released && goOn('released', released, last, watched, time);
  if (episode && (affected.nodes <= released.upTo || !isReached(watched))) return { released, episode };
  if (!isReached(watched)) return {};
  const added = { ...trip, trippedAt: time.now, ...affected };
  return { added, episode: { kind: 'held', trip: added } };
}

function shadowed(last: Episode | undefined, watched: Watched, time: ReviewTime): Outcome {
  const { of: trip, affected } = watched;
  const episode = last?.kind === 'told' ? goOn('told', last.trip, last, watched, time) : undefined;
  if (episode) return { episode };
  if (!isReached(watched)) return {};
  const wouldTrip = { ...trip, trippedAt: time.now, ...affected };
  return { wouldTrip, episode: { kind: 'told', trip: wouldTrip } };
}

/** Returns an episode's state; `undefined`: it has ended. It continues `last` of the same kind. */
function goOn(
  kind: Episode['kind'],
  trip: Trip,
  last: Episode | undefined,
  watched: Watched,
  { stopwatchMs }: ReviewTime,
): Episode | undefined {
  if (!isCalm(watched)) return { kind, trip };
  const calmSince = (last?.kind === kind ? last.calmSince : undefined) ?? stopwatchMs;
  return stopwatchMs - calmSince >= CALM_MS ? undefined : { kind, trip, calmSince };
}

const isReached = ({ affected: { nodes }, limit }: Watched): boolean => nodes > 0 && nodes >= limit;

const isCalm = ({ affected: { nodes }, limit }: Watched): boolean => nodes === 0 || nodes * 2 < limit;

const isSame = (one: Pick<Trip, 'scope' | 'zone'>, other: Pick<Trip, 'scope' | 'zone'>): boolean =>
  one.scope === other.scope && one.zone === other.zone;

/** `known`: trips and episodes, whose zones are included even if no node is affected any more. */
function watchedBy(
  { cluster, zone, customTaints }: GuardPolicy,
  counts: GuardCounts,
  known: readonly Pick<Trip, 'scope' | 'zone'>[],
): readonly Watched[] {
  const zones = new Set([...counts.zones.keys(), ...known.flatMap((each) => each.zone ?? [])]);
  const inZone = (name: string): Affected => counts.zones.get(name) ?? { nodes: 0, outOf: 0 };
  return [
    ...(cluster ? [ofCluster(cluster, counts.cluster)] : []),
    ...(zone ? [...zones].map((name) => watch({ scope: 'zone', zone: name }, zone, inZone(name))) : []),
    ...(customTaints ? [watch({ scope: 'customTaints' }, customTaints, counts.customTaints)] : []),
  ];
}

function watch(subject: Watched['of'], { percent, nodes }: Threshold, affected: Affected): Watched {
  return { of: subject, affected, limit: Math.max((percent * affected.outOf) / 100, nodes) };
}

function ofCluster(threshold: Threshold, affected: Affected): Watched {
  const watched = watch({ scope: 'cluster' }, threshold, affected);
  return { ...watched, limit: Math.min(watched.limit, affected.outOf) };
}
