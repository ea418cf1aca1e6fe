import pMap from 'p-map';

const MAX_CONCURRENT_SOCKETS = 12;

/** The result of a history of another kind than those of the whole service. */
export interface OtherHistory {
  /** The broken promises; empty when all were kept. */
  readonly faults: readonly string[];
  /** The events, line by line. */
  readonly story: readonly string[];
  /** The number of tests of each promise, by its description. */
  readonly tried: Readonly<Record<string, number>>;
}

/** Plays the random history of a seed. */
export type Play = (seed: number) => Promise<OtherHistory>;

/** Histories of parts of the service in a world of their own. Each is in a module that is loaded when it is played. */
export const HISTORY_KINDS = {
  sockets: async (): Promise<Play> => {
    const { playSockets } = await import('./socket-history.ts');
    return (seed) => playSockets(seed);
  },
  takeovers: async (): Promise<Play> => {
    const { playTakeover } = await import('./takeover-history.ts');
    return (seed) => playTakeover(seed);
  },
} as const satisfies Record<string, () => Promise<Play>>;

export type HistoryKind = keyof typeof HISTORY_KINDS;

/** The result of the histories of one kind. */
export interface OtherSweep {
  readonly faults: readonly string[];
  readonly tried: Readonly<Record<string, number>>;
}

/** Plays these seeds; a fault names its seed and the command that replays it. */
export async function sweepKind(
  kind: HistoryKind,
  seeds: Iterable<number>,
  play?: Play,
): Promise<OtherSweep> {
  const played = play ?? (await HISTORY_KINDS[kind]());
  // Histories in real time mostly wait, so many can run concurrently. Histories in simulated time need the thread for themselves.
  const concurrency = kind === 'sockets' ? MAX_CONCURRENT_SOCKETS : 1;
  const histories = await pMap(seeds, async (seed) => ({ seed, ...(await played(seed)) }), { concurrency });
  const tried: Record<string, number> = {};
  for (const history of histories)
    for (const [what, count] of Object.entries(history.tried)) tried[what] = (tried[what] ?? 0) + count;
  const faults = histories.flatMap(({ seed, faults: [first] }) =>
    first === undefined ? [] : [`seed ${seed}: ${first} (${replayOfKind(kind, seed)})`],
  );
  return { faults, tried };
}

/** Returns the command that prints a history's story. */
export const replayOfKind = (kind: HistoryKind, seed: number): string =>
  `npm run simulate -- --kind ${kind} --seed ${seed} --story`;
