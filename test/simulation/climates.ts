const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The longest time for which a dead relay has no successor, and for which a relay does not notice that it lost its lease. */
export const MAX_OUTAGE_MS = 60_000;
export const MAX_UNKNOWING_MS = 60_000;

/** The conditions in which a history is played. */
export interface Climate {
  /** The table of AWS, or the database of one process. */
  readonly store: 'dynamodb' | 'sqlite';
  /** The chance that a request fails, before or after its effect. */
  readonly trouble: number;
  /** The chance that the answer to a completed request arrives seconds late, or never, from any service. */
  readonly late: number;
  /** The chance that a process dies on a request. */
  readonly death: number;
  /** The chance that another process commits first, or that a queue or batch accepts only a part. */
  readonly conflict: number;
  /** The chance that a handled message is delivered again, up to days later. */
  readonly duplicate: number;
  /** The chance that the message of a fired schedule is lost. */
  readonly dropped: number;
  /** The number of times at which a service is unavailable, for minutes. */
  readonly spells: number;
  /** The most relays that are replaced or die. */
  readonly relayChanges: number;
  /** The chance per change that a watch breaks and needs a new list. */
  readonly gap: number;
  /** The longest time of one half of a request to an API server (there, or back). */
  readonly apiMs: number;
  /** The longest delay of an event on a watch. */
  readonly watchLagMs: number;
  /** True if API servers stream lists. */
  readonly streamedLists: boolean;
  /** The most nodes whose pods a relay follows by watches of their own. */
  readonly ownWatches: number;
  /** The most concurrent requests of one process to one API server. */
  readonly callsAtOnce: number;
  /** The most pods on a node. */
  readonly mostPods: number;
  /** The most items on a page of DynamoDB. */
  readonly pageItems: number;
  /** The duration for which the first cluster's API server is unavailable once; `undefined`: it never is. */
  readonly outageMs?: readonly [atLeast: number, atMost: number];
  /** The nodes of the first cluster. */
  readonly nodes: number;
  /** The number of blackouts in an episode, in which nodes go down alone or many at a time. */
  readonly blackouts: number;
  /** True if a second, healthy cluster exists. */
  readonly neighbour: boolean;
  /** The number of times that the cluster is unregistered for a while. */
  readonly unregistered: number;
  /** The number of busy episodes, the duration of each, and the longest quiet time between them. */
  readonly episodes: number;
  readonly episodeMs: number;
  readonly quietMs: number;
  /** The time after the last episode in which nothing happens or fails. */
  readonly calmMs: number;
  /** The number of user actions in an episode. */
  readonly acts: number;
  /** True if pods have all kinds of tolerations, for minutes at most; otherwise they tolerate as most pods do. */
  readonly motley: boolean;
  /** True if clusters always have rates, and owners who change the limited settings. */
  readonly paced: boolean;
  /** True if clusters always limit the evicted pods of a workload. */
  readonly limited: boolean;
  /** True if each time has its own random numbers, so that a history can be shortened without becoming another one. */
  readonly momentous: boolean;
}

const FAIR: Climate = {
  store: 'dynamodb',
  trouble: 0,
  late: 0,
  death: 0,
  conflict: 0,
  duplicate: 0,
  dropped: 0,
  spells: 0,
  relayChanges: 0,
  gap: 0,
  apiMs: 80,
  watchLagMs: 150,
  callsAtOnce: 48,
  mostPods: 8,
  pageItems: 1000,
  nodes: 2,
  blackouts: 0,
  streamedLists: true,
  ownWatches: 100,
  neighbour: false,
  unregistered: 0,
  episodes: 1,
  quietMs: 0,
  acts: 30,
  motley: false,
  paced: false,
  limited: false,
  momentous: false,
  episodeMs: 25 * MINUTE_MS,
  calmMs: 70 * MINUTE_MS,
};

/** Few pods on one node, for minutes. Many of these histories take the time of a long one. */
const BRIEF: Climate = {
  ...FAIR,
  nodes: 1,
  mostPods: 3,
  acts: 6,
  motley: true,
  momentous: true,
  episodeMs: 4 * MINUTE_MS,
  calmMs: 12 * MINUTE_MS,
};

export const CLIMATES = {
  fair: FAIR,
  /** One process, with its database. */
  alone: { ...FAIR, store: 'sqlite', relayChanges: 2, duplicate: 0.1 },
  /** Messages are delivered again, however old. */
  echoing: { ...FAIR, duplicate: 0.5, episodes: 2, quietMs: 30 * HOUR_MS },
  /** Relays are replaced, and watches break. */
  shifting: { ...FAIR, relayChanges: 4, gap: 0.05, duplicate: 0.1, ownWatches: 1 },
  /** API servers answer slowly, and watches lag behind. */
  slow: { ...FAIR, apiMs: 900, watchLagMs: 4_000, callsAtOnce: 6, neighbour: true, streamedLists: false },
  /** Nodes are full, pages are short and batches are cut. */
  crowded: {
    ...FAIR,
    mostPods: 130,
    pageItems: 3,
    conflict: 0.01,
    death: 0.0002,
    trouble: 0.001,
    apiMs: 200,
    callsAtOnce: 16,
    ownWatches: 0,
  },
  /** Clusters are unregistered and registered. */
  fickle: { ...FAIR, unregistered: 2, relayChanges: 1, duplicate: 0.1, episodes: 2, quietMs: 3 * HOUR_MS },
  /** One API server is unavailable, and many evictions wait for it; another API server is healthy. */
  sick: {
    ...FAIR,
    nodes: 12,
    outageMs: [HOUR_MS / 2, 4 * HOUR_MS],
    neighbour: true,
    duplicate: 0.02,
    ownWatches: 4,
  },
  /** Everything is healthy, and many nodes are tainted at the same time. */
  wide: { ...FAIR, nodes: 12 },
  /** Nodes go down, one at a time and by zone. */
  dark: { ...FAIR, nodes: 12, blackouts: 3, mostPods: 4, relayChanges: 1 },
  /** Nodes go down as in `dark`, and everything else fails too. */
  gloomy: {
    ...FAIR,
    nodes: 12,
    blackouts: 3,
    mostPods: 4,
    relayChanges: 4,
    gap: 0.03,
    ownWatches: 4,
    spells: 4,
    trouble: 0.03,
    death: 0.004,
    conflict: 0.03,
    duplicate: 0.1,
    dropped: 0.1,
  },
  /** An API server is unavailable for days: due evictions outlive their time to live, or fail. */
  exiled: { ...FAIR, nodes: 3, outageMs: [20 * HOUR_MS, 120 * HOUR_MS], duplicate: 0.02 },
  breezy: {
    ...FAIR,
    trouble: 0.02,
    death: 0.003,
    conflict: 0.02,
    duplicate: 0.1,
    dropped: 0.1,
    relayChanges: 4,
    gap: 0.03,
    pageItems: 3,
    episodes: 2,
    quietMs: 8 * HOUR_MS,
    ownWatches: 1,
  },
  stormy: {
    ...FAIR,
    trouble: 0.08,
    death: 0.015,
    conflict: 0.1,
    duplicate: 0.3,
    dropped: 0.3,
    relayChanges: 4,
    gap: 0.03,
    pageItems: 2,
    spells: 6,
    apiMs: 400,
    streamedLists: false,
  },
  brief: BRIEF,
  /** As short as `brief`, with failures of every kind. Repairs by the next resync take time. */
  gusty: {
    ...BRIEF,
    trouble: 0.04,
    death: 0.008,
    conflict: 0.05,
    duplicate: 0.2,
    dropped: 0.2,
    relayChanges: 1,
    gap: 0.05,
    pageItems: 2,
    calmMs: 35 * MINUTE_MS,
  },
  /** As short as `brief`, in two clusters; the API server of one cluster is unavailable for a while. */
  split: {
    ...BRIEF,
    nodes: 3,
    neighbour: true,
    outageMs: [MINUTE_MS, 4 * MINUTE_MS],
    calmMs: 35 * MINUTE_MS,
  },
  /** As short as `brief`, on more and fuller nodes that are tainted at the same time, with rates. */
  paced: {
    ...BRIEF,
    nodes: 5,
    mostPods: 16,
    acts: 3,
    motley: false,
    paced: true,
    calmMs: 20 * MINUTE_MS,
  },
  /** As `paced`, in one process. */
  metered: {
    ...BRIEF,
    nodes: 5,
    mostPods: 16,
    acts: 3,
    motley: false,
    paced: true,
    calmMs: 20 * MINUTE_MS,
    store: 'sqlite',
    relayChanges: 1,
  },
  /**
   * As short as `brief`, on more nodes that are tainted at the same time, with limits of workloads. Processes die and conflict
   * with each other.
   */
  limited: {
    ...BRIEF,
    nodes: 5,
    mostPods: 10,
    acts: 3,
    motley: false,
    limited: true,
    calmMs: 60 * MINUTE_MS,
    conflict: 0.05,
    duplicate: 0.2,
    death: 0.008,
  },
  /** As short as `brief`, on a full node whose API server is slow and answers one call at a time: pods wait for a free slot. */
  queued: { ...BRIEF, mostPods: 16, acts: 10, apiMs: 900, callsAtOnce: 1 },
  /** As short as `brief`; requests succeed, but the answer arrives seconds late, or never. */
  belated: { ...BRIEF, late: 0.15, relayChanges: 1, calmMs: 35 * MINUTE_MS },
  /** As `belated`, in one process. */
  tardy: { ...BRIEF, store: 'sqlite', late: 0.15, relayChanges: 1, calmMs: 35 * MINUTE_MS },
} as const satisfies Record<string, Climate>;

export type ClimateName = keyof typeof CLIMATES;
/** The names of the climates, as often as they are played. */
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
