import type { ClimateName } from './climates.ts';
import type { Compared } from './naive-judge.ts';
import type { Paced } from './pace-judge.ts';
import { type PromiseName, type Tried, untried } from './promises.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

/** A history that broke a promise. */
export interface Violation {
  readonly seed: number;
  readonly climate: ClimateName;
  readonly governed: boolean;
  readonly faults: readonly string[];
}

/** The results of some histories. */
export interface Sweep {
  /** The histories, by climate. */
  readonly played: Partial<Record<ClimateName, Played>>;
  readonly tried: Tried;
  readonly compared: Compared;
  readonly paced: Paced;
  readonly violations: readonly Violation[];
}

export interface Played {
  readonly histories: number;
  readonly evictions: number;
  /** Processor time. */
  readonly cpuMs: number;
}

export const NO_SWEEP: Sweep = {
  played: {},
  tried: untried(),
  compared: { exact: 0, roughly: 0, stayed: 0 },
  paced: { windows: 0 },
  violations: [],
};

/** Plays these seeds, each in the next of these climates; without climates, each history picks its own. */
export async function sweep(
  seeds: readonly number[],
  climates: readonly ClimateName[],
  options: Omit<SimulationOptions, 'climate'> = {},
): Promise<Sweep> {
  let all = NO_SWEEP;
  for (const seed of seeds) {
    const before = process.threadCpuUsage();
    const climate = climates[seed % climates.length];
    const history = await simulate(seed, { ...options, ...(climate ? { climate } : {}) });
    const { user, system } = process.threadCpuUsage(before);
    const { tried, compared, paced, faults, governed } = history;
    const played = { histories: 1, evictions: history.evicted, cpuMs: (user + system) / 1000 };
    all = together(all, {
      played: { [history.climate]: played },
      tried,
      compared,
      paced,
      violations: faults.length === 0 ? [] : [{ seed, climate: history.climate, governed, faults }],
    });
  }
  return all;
}

/** Combines two results. */
export function together(a: Sweep, b: Sweep): Sweep {
  const climates = Object.keys({ ...a.played, ...b.played }) as ClimateName[];
  const none: Played = { histories: 0, evictions: 0, cpuMs: 0 };
  return {
    played: Object.fromEntries(
      climates.map((name) => [name, sum(a.played[name] ?? none, b.played[name] ?? none)]),
    ),
    tried: sum(a.tried, b.tried),
    compared: sum(a.compared, b.compared),
    paced: { windows: a.paced.windows + b.paced.windows },
    violations: [...a.violations, ...b.violations].sort((one, other) => one.seed - other.seed),
  };
}

function sum<T extends object>(a: T, b: T): T {
  const entries = Object.entries(a).map(([name, value]) => [name, value + Number(Reflect.get(b, name))]);
  return Object.fromEntries(entries) as T;
}

/** Returns the promise that a fault broke; `rule`: the naive model disagrees. */
export const brokenBy = (fault: string): PromiseName | 'rule' | 'other' => {
  const [, promise] = /^(P\d):/.exec(fault) ?? [];
  if (promise) return promise as PromiseName;
  return fault.startsWith('the naive model') ? 'rule' : 'other';
};
