import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { GuardPolicy, ReleasedTrip, Threshold, Trip } from './policy.ts';

/** For so long fewer than half of what trips it must be affected before the guard lets go by itself. */
export const CALM_MS = 5 * 60_000;

/** How many of some nodes are affected. */
export interface Affected {
  readonly nodes: number;
  readonly outOf: number;
}

/** What the guard judges by. */
export interface GuardCounts {
  /** Of all nodes, those that are down now. */
  readonly cluster: Affected;
  /** The same of each zone; one that is not named has no node that is down. */
  readonly zones: ReadonlyMap<string, Affected>;
  /** Of all nodes, those that carry a NoExecute taint that somebody else than the node controller set lately. */
  readonly people: Affected;
}

/**
 * What happened in one scope since its threshold was reached, by the trip that this made; it ends with five minutes under
 * half of that. `told`: it only told that it would have tripped.
 */
export interface Episode {
  readonly kind: 'held' | 'released' | 'told';
  readonly trip: Trip;
  /** Since when, by the stopwatch, fewer than half are affected; absent: they are not. */
  readonly calmSince?: number;
}

/** What stands of the guard of a cluster, and what the last review left. */
export interface Guarded {
  readonly trips: readonly Trip[];
  readonly released: readonly ReleasedTrip[];
  /** Empty: all is taken as it stands. */
  readonly episodes: readonly Episode[];
}

/** What is to be done about the guard of a cluster, and what is so then. */
export interface GuardReview extends Guarded {
  /** Those of the trips that did not stand before. */
  readonly added: readonly Trip[];
  /** In shadow: what would be `added`; each is told once. */
  readonly wouldTrip: readonly Trip[];
}

/** A scope, or one zone, that policy watches. */
interface Watched {
  readonly of: Pick<Trip, 'scope' | 'zone'>;
  readonly affected: Affected;
  /** From so many affected nodes on it trips. */
  readonly limit: number;
}

/** A trip as programs read it: in logs, `-o json`, and the console API. */
export interface TripReport extends Omit<Trip, 'outOf'> {
  /** How many nodes there were. */
  readonly total: number;
}

export const reportOf = ({ outOf: total, ...trip }: Trip): TripReport => ({ ...trip, total });

/** What trips a guard, for people. */
export function tripText({ scope, zone, nodes, total }: Omit<TripReport, 'trippedAt'>): string {
  const what = scope === 'people' ? 'were tainted by people' : 'are down';
  return `${nodes} of ${total} nodes ${what}${zone === undefined ? '' : ` in zone ${zone}`}`;
}

/**
 * Judges by how many nodes are affected at `now` what the guard holds.
 *
 * A scope trips when its percentage and its number of nodes are reached; the cluster also when all of its nodes are down,
 * however few. A zone does not: where each node has a zone of its own, one that fails would trip it. A trip that is there
 * no more was released by somebody: its scope trips again only when more nodes are affected than were then, or after it was
 * calm. What policy does not watch, or in shadow only, is let go. `stopwatchMs` measures how long it has been calm: what `now` says
 * may be set.
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
    if (policy.shadow) return shadowed(last, watched, time);
    const trip = trips.find(isOfThis);
    return trip
      ? standing(trip, last, watched, time)
      : standingNot(released.find(isOfThis), last, watched, time);
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

/** Episodes after a time in which nobody knew how many nodes were affected: that was no calm. */
export const unheard = (episodes: readonly Episode[]): readonly Episode[] =>
  episodes.map(({ calmSince: _calmSince, ...episode }) => episode);

/** When a review is: by the clock, and by the stopwatch. */
interface ReviewTime {
  readonly now: EpochMs;
  readonly stopwatchMs: number;
}

/** What becomes of one scope, or zone. */
interface Outcome {
  readonly kept?: Trip;
  readonly added?: Trip;
  readonly released?: ReleasedTrip;
  readonly wouldTrip?: Trip;
  readonly episode?: Episode;
}

function standing(trip: Trip, last: Episode | undefined, watched: Watched, time: ReviewTime): Outcome {
  const episode = goOn('held', trip, last, watched, time);
  return episode ? { kept: trip, episode } : {};
}

function standingNot(
  known: ReleasedTrip | undefined,
  last: Episode | undefined,
  watched: Watched,
  time: ReviewTime,
): Outcome {
  const { of, affected } = watched;
  // Who released it just now has seen these nodes.
  const isNew = known === undefined && last !== undefined && last.kind !== 'told' && isReached(watched);
  const released = isNew ? { ...last.trip, upTo: affected.nodes } : known;
  const episode = released && goOn('released', released, last, watched, time);
  if (episode && (affected.nodes <= released.upTo || !isReached(watched))) return { released, episode };
  if (!isReached(watched)) return {};
  const added = { ...of, trippedAt: time.now, ...affected };
  return { added, episode: { kind: 'held', trip: added } };
}

function shadowed(last: Episode | undefined, watched: Watched, time: ReviewTime): Outcome {
  const { of, affected } = watched;
  const episode = last?.kind === 'told' ? goOn('told', last.trip, last, watched, time) : undefined;
  if (episode) return { episode };
  if (!isReached(watched)) return {};
  const wouldTrip = { ...of, trippedAt: time.now, ...affected };
  return { wouldTrip, episode: { kind: 'told', trip: wouldTrip } };
}

/** An episode as it is now; `undefined`: it has ended. `last`: as it was, if it is the same. */
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

/** `known`: where something is going on, also where no node is affected any more. */
function watchedBy(
  { cluster, zone, people }: GuardPolicy,
  counts: GuardCounts,
  known: readonly Pick<Trip, 'scope' | 'zone'>[],
): readonly Watched[] {
  // Equivalent mutant (ArrayDeclaration): A zone of which nothing is counted or known has no node that is
  // down, and comes to nothing.
  const zones = new Set([...counts.zones.keys(), ...known.flatMap((each) => each.zone ?? [])]);
  const inZone = (name: string): Affected => counts.zones.get(name) ?? { nodes: 0, outOf: 0 };
  return [
    ...(cluster ? [ofCluster(cluster, counts.cluster)] : []),
    ...(zone ? [...zones].map((name) => watch({ scope: 'zone', zone: name }, zone, inZone(name))) : []),
    ...(people ? [watch({ scope: 'people' }, people, counts.people)] : []),
  ];
}

function watch(of: Watched['of'], { percent, nodes }: Threshold, affected: Affected): Watched {
  return { of, affected, limit: Math.max((percent * affected.outOf) / 100, nodes) };
}

function ofCluster(threshold: Threshold, affected: Affected): Watched {
  const watched = watch({ scope: 'cluster' }, threshold, affected);
  return { ...watched, limit: Math.min(watched.limit, affected.outOf) };
}
