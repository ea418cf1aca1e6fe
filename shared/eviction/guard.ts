import type { EpochMs } from './identity.ts';
import type { GuardPolicy, Threshold, Trip } from './policy.ts';

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
 * What happened in one scope since its threshold was reached; it ends with five minutes under half of that.
 * - `held`: its trip stands.
 * - `released`: somebody released it, when `upTo` nodes were affected: these alone do not trip it again.
 * - `told`: it only told that it would have tripped.
 */
export type Episode = Pick<Trip, 'scope' | 'zone'> & {
  /** Since when fewer than half are affected; absent: they are not. */
  readonly calmSince?: EpochMs;
} & ({ readonly kind: 'held' | 'told' } | { readonly kind: 'released'; readonly upTo: number });

/** What is to be done about the guard of a cluster. */
export interface GuardReview {
  /** The trips that are to stand: those that stood, without `released`, and `added`. */
  readonly trips: readonly Trip[];
  readonly added: readonly Trip[];
  /** What it lets go by itself, and what policy does not watch, or in shadow only. */
  readonly released: readonly Trip[];
  /** In shadow: what would be `added`; each is told once. */
  readonly wouldTrip: readonly Trip[];
  /** For the next review, once `trips` stand. */
  readonly episodes: readonly Episode[];
}

/** A scope, or one zone, that policy watches. */
interface Watched {
  readonly of: Pick<Trip, 'scope' | 'zone'>;
  readonly affected: Affected;
  /** From so many affected nodes on it trips. */
  readonly limit: number;
}

/**
 * Judges by how many nodes are affected at `now` what the guard holds. `trips`: those that stand; `episodes`: what the
 * last review left, or nothing: then trips are taken as they stand.
 *
 * A scope trips when its percentage and its number of nodes are reached; the cluster also when all of its nodes are down,
 * however few. A zone does not: where each node has a zone of its own, one that fails would trip it. What somebody
 * released trips again only when more nodes are affected than were then, or after it was calm.
 */
export function reviewGuard(
  policy: GuardPolicy,
  counts: GuardCounts,
  { trips, episodes }: { readonly trips: readonly Trip[]; readonly episodes: readonly Episode[] },
  now: EpochMs,
): GuardReview {
  const outcomes = watchedBy(policy, counts, [...trips, ...episodes]).map((watched) => {
    const isOfThis = (each: Pick<Trip, 'scope' | 'zone'>) => isSame(each, watched.of);
    const last = episodes.find(isOfThis);
    return policy.shadow ? shadowed(last, watched, now) : guarded(trips.find(isOfThis), last, watched, now);
  });
  const kept = outcomes.flatMap(({ kept }) => kept ?? []);
  const added = outcomes.flatMap(({ added }) => added ?? []);
  return {
    trips: [...kept, ...added],
    added,
    released: trips.filter((trip) => !kept.includes(trip)),
    wouldTrip: outcomes.flatMap(({ wouldTrip }) => wouldTrip ?? []),
    episodes: outcomes.flatMap(({ episode }) => episode ?? []),
  };
}

/** Episodes after a time in which nobody knew how many nodes were affected: that was no calm. */
export const unheard = (episodes: readonly Episode[]): readonly Episode[] =>
  episodes.map(({ calmSince: _calmSince, ...episode }) => episode);

/** What becomes of one scope, or zone. */
interface Outcome {
  readonly kept?: Trip;
  readonly added?: Trip;
  readonly wouldTrip?: Trip;
  readonly episode?: Episode | undefined;
}

function guarded(trip: Trip | undefined, last: Episode | undefined, watched: Watched, now: EpochMs): Outcome {
  const { of, affected } = watched;
  if (trip) {
    const episode = goOn({ ...of, kind: 'held', ...calmOf(last) }, watched, now);
    return episode ? { kept: trip, episode } : {};
  }
  // Who released it has seen these nodes.
  const released: Episode | undefined =
    last?.kind === 'held' ? { ...last, kind: 'released', upTo: affected.nodes } : last;
  const episode = released?.kind === 'released' ? goOn(released, watched, now) : undefined;
  const isAllowed = episode?.kind === 'released' && affected.nodes <= episode.upTo;
  if (isAllowed || !isReached(watched)) return { episode };
  return { added: { ...of, trippedAt: now, ...affected }, episode: { ...of, kind: 'held' } };
}

function shadowed(last: Episode | undefined, watched: Watched, now: EpochMs): Outcome {
  const { of, affected } = watched;
  const episode = last?.kind === 'told' ? goOn(last, watched, now) : undefined;
  if (episode || !isReached(watched)) return { episode };
  return { wouldTrip: { ...of, trippedAt: now, ...affected }, episode: { ...of, kind: 'told' } };
}

/** The episode as it is now; `undefined`: it has ended. */
function goOn({ calmSince, ...episode }: Episode, watched: Watched, now: EpochMs): Episode | undefined {
  if (!isCalm(watched)) return episode;
  const since = calmSince ?? now;
  return now - since >= CALM_MS ? undefined : { ...episode, calmSince: since };
}

const calmOf = (last: Episode | undefined) =>
  last?.kind === 'held' && last.calmSince !== undefined ? { calmSince: last.calmSince } : {};

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
