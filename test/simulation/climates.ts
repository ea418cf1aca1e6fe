const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** For so long a dead relay has no successor, and a relay that lost its lease does not know. */
export const MAX_OUTAGE_MS = 60_000;
export const MAX_UNKNOWING_MS = 60_000;

/** What a history is played in. */
export interface Climate {
  /** The table of AWS, or the database of one process. */
  readonly store: 'dynamodb' | 'sqlite';
  /** How often a request fails, before or after it had its effect. */
  readonly trouble: number;
  /** How often what a request did is answered seconds later only, or never, whoever is asked. */
  readonly late: number;
  /** How often a process dies on a request. */
  readonly death: number;
  /** How often somebody else commits first, or a queue or batch takes a part only. */
  readonly conflict: number;
  /** How often a message that was handled comes again, up to days later. */
  readonly duplicate: number;
  /** How often a schedule fires and nobody hears. */
  readonly dropped: number;
  /** Times at which a service is away, for minutes. */
  readonly spells: number;
  /** The most relays that are replaced, and that die, in the course of things. */
  readonly relayChanges: number;
  /** How often a watch breaks such that it is listed anew, per change. */
  readonly gap: number;
  /** The longest that one half of a request to an API server (there, or back) takes. */
  readonly apiMs: number;
  /** The longest that a watch takes to tell what happened. */
  readonly watchLagMs: number;
  /** Whether API servers stream lists. */
  readonly streamedLists: boolean;
  /** Nodes whose pods a relay follows by watches of their own, at most. */
  readonly ownWatches: number;
  /** Requests that one process has under way to one API server at a time. */
  readonly callsAtOnce: number;
  /** Pods of a node at most. */
  readonly mostPods: number;
  /** Items on a page of DynamoDB's at most. */
  readonly pageItems: number;
  /** The first cluster's API server is away for so long at some time; `undefined`: never. */
  readonly outageMs?: readonly [atLeast: number, atMost: number];
  /** Nodes of the first cluster. */
  readonly nodes: number;
  /** How often nodes of it go down, alone or many at a time, in an episode. */
  readonly blackouts: number;
  /** Whether there is a second, healthy cluster. */
  readonly neighbour: boolean;
  /** How often the cluster is unregistered for a while. */
  readonly unregistered: number;
  /** Times in which much happens, how long each lasts, and the longest quiet time between them. */
  readonly episodes: number;
  readonly episodeMs: number;
  readonly quietMs: number;
  /** For so long after the last of it nothing happens or goes wrong. */
  readonly calmMs: number;
  /** How often somebody does something in an episode. */
  readonly acts: number;
  /** Whether pods tolerate in all the ways there are, for minutes at most; otherwise as most pods do. */
  readonly motley: boolean;
  /** Whether clusters have rates at all times, and owners who meddle with what they limit. */
  readonly paced: boolean;
  /** Whether clusters limit at all times how many pods of a workload go. */
  readonly limited: boolean;
  /** Whether each moment has random numbers of its own, so that a history can be made shorter without becoming another one. */
  readonly momentous: boolean;
}

const FAIR: Climate = {
  store: 'dynamodb',
  ...{
    trouble: 0,
    late: 0,
    death: 0,
    conflict: 0,
    duplicate: 0,
    dropped: 0,
    spells: 0,
    relayChanges: 0,
    gap: 0,
  },
  ...{ apiMs: 80, watchLagMs: 150, callsAtOnce: 48, mostPods: 8, pageItems: 1000, nodes: 2, blackouts: 0 },
  ...{ streamedLists: true, ownWatches: 100 },
  ...{
    neighbour: false,
    unregistered: 0,
    episodes: 1,
    quietMs: 0,
    acts: 30,
    motley: false,
    paced: false,
    limited: false,
    momentous: false,
  },
  ...{ episodeMs: 25 * MINUTE_MS, calmMs: 70 * MINUTE_MS },
};

/** Few pods on one node, for minutes: so many of these are played in the time of a long one. */
const BRIEF: Climate = {
  ...FAIR,
  ...{
    nodes: 1,
    mostPods: 3,
    acts: 6,
    motley: true,
    momentous: true,
    episodeMs: 4 * MINUTE_MS,
    calmMs: 12 * MINUTE_MS,
  },
};

export const CLIMATES = {
  fair: FAIR,
  /** Of one process, with its database. */
  alone: { ...FAIR, store: 'sqlite', relayChanges: 2, duplicate: 0.1 },
  /** Messages come again, however old. */
  echoing: { ...FAIR, duplicate: 0.5, episodes: 2, quietMs: 30 * HOUR_MS },
  /** Relays come and go, and watches break. */
  shifting: { ...FAIR, relayChanges: 4, gap: 0.05, duplicate: 0.1, ownWatches: 1 },
  /** API servers take their time, and watches lag behind. */
  slow: { ...FAIR, apiMs: 900, watchLagMs: 4_000, callsAtOnce: 6, neighbour: true, streamedLists: false },
  /** Nodes are full, pages short and batches cut. */
  crowded: {
    ...FAIR,
    ...{
      mostPods: 130,
      pageItems: 3,
      conflict: 0.01,
      death: 0.0002,
      trouble: 0.001,
      apiMs: 200,
      callsAtOnce: 16,
      ownWatches: 0,
    },
  },
  /** The registry changes. */
  fickle: { ...FAIR, unregistered: 2, relayChanges: 1, duplicate: 0.1, episodes: 2, quietMs: 3 * HOUR_MS },
  /** An API server is away, and many evictions wait for it; another one is well. */
  sick: {
    ...FAIR,
    ...{ nodes: 12, outageMs: [HOUR_MS / 2, 4 * HOUR_MS], neighbour: true, duplicate: 0.02, ownWatches: 4 },
  },
  /** All is well, and many nodes are tainted at once. */
  wide: { ...FAIR, nodes: 12 },
  /** Nodes go down, by ones and by zones. */
  dark: { ...FAIR, nodes: 12, blackouts: 3, mostPods: 4, relayChanges: 1 },
  /** The same, and all else goes wrong, too. */
  gloomy: {
    ...FAIR,
    ...{ nodes: 12, blackouts: 3, mostPods: 4, relayChanges: 4, gap: 0.03, ownWatches: 4, spells: 4 },
    ...{ trouble: 0.03, death: 0.004, conflict: 0.03, duplicate: 0.1, dropped: 0.1 },
  },
  /** An API server is away for days: what is due outlives its time to live, or is given up. */
  exiled: { ...FAIR, nodes: 3, outageMs: [20 * HOUR_MS, 120 * HOUR_MS], duplicate: 0.02 },
  breezy: {
    ...FAIR,
    ...{
      trouble: 0.02,
      death: 0.003,
      conflict: 0.02,
      duplicate: 0.1,
      dropped: 0.1,
      relayChanges: 4,
      gap: 0.03,
    },
    ...{ pageItems: 3, episodes: 2, quietMs: 8 * HOUR_MS, ownWatches: 1 },
  },
  stormy: {
    ...FAIR,
    ...{
      trouble: 0.08,
      death: 0.015,
      conflict: 0.1,
      duplicate: 0.3,
      dropped: 0.3,
      relayChanges: 4,
      gap: 0.03,
    },
    ...{ pageItems: 2, spells: 6, apiMs: 400, streamedLists: false },
  },
  brief: BRIEF,
  /** As short, and all goes wrong. What heals by the next resync takes its time. */
  gusty: {
    ...BRIEF,
    ...{ trouble: 0.04, death: 0.008, conflict: 0.05, duplicate: 0.2, dropped: 0.2, relayChanges: 1 },
    ...{ gap: 0.05, pageItems: 2, calmMs: 35 * MINUTE_MS },
  },
  /** As short, in two clusters; the API server of one is away for a while. */
  split: {
    ...BRIEF,
    ...{ nodes: 3, neighbour: true, outageMs: [MINUTE_MS, 4 * MINUTE_MS], calmMs: 35 * MINUTE_MS },
  },
  /** As short, on more and fuller nodes that are tainted at once, with rates. */
  paced: {
    ...BRIEF,
    ...{ nodes: 5, mostPods: 16, acts: 3, motley: false, paced: true, calmMs: 20 * MINUTE_MS },
  },
  /** As short, on more nodes that are tainted at once, by processes that die and are in each other's way, with limits of workloads. */
  limited: {
    ...BRIEF,
    ...{ nodes: 5, mostPods: 10, acts: 3, motley: false, limited: true, calmMs: 60 * MINUTE_MS },
    ...{ conflict: 0.05, duplicate: 0.2, death: 0.008 },
  },
  /** As short, on a full node whose API server is slow and answers one call at a time: pods wait for their turn. */
  queued: { ...BRIEF, mostPods: 16, acts: 10, apiMs: 900, callsAtOnce: 1 },
  /** As short, and what is done is done, but answered seconds later, or never. */
  belated: { ...BRIEF, late: 0.15, relayChanges: 1, calmMs: 35 * MINUTE_MS },
  /** The same in one process. */
  tardy: { ...BRIEF, store: 'sqlite', late: 0.15, relayChanges: 1, calmMs: 35 * MINUTE_MS },
} as const satisfies Record<string, Climate>;

export type ClimateName = keyof typeof CLIMATES;
/** As often as they are here. */
export const CLIMATE_NAMES: readonly [ClimateName, ...ClimateName[]] = [
  ...([
    'fair',
    'alone',
    'echoing',
    'shifting',
    'slow',
    'crowded',
    'fickle',
    'sick',
    'dark',
    'gloomy',
    'exiled',
    'breezy',
    'stormy',
  ] as const),
];
