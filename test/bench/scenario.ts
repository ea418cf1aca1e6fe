import type { Figure } from './result.ts';

export interface BenchOptions {
  /** The number of turns of service and peer; absent: the scenario's default. */
  readonly runs: number | undefined;
  /** Runs within seconds, for CI: it shows that the scenario works, and is no measurement. */
  readonly short: boolean;
  /** The duration of the relay's soak. */
  readonly soakMinutes: number;
}

/**
 * Measures one aspect beside a peer; its figures are passed to `tell`, so that figures before a failure are not lost.
 */
export interface Scenario {
  readonly about: string;
  run(report: (figure: Figure) => void, options: BenchOptions): Promise<void>;
}

/** A requirement of a scenario or of its peer is missing; the message names it and the way to get it. */
export class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/**
 * Runs the contenders in turns, `runs` times, beginning with another one each time; returns the results of each, run by
 * run.
 */
export async function takingTurns<Name extends string, Value>(
  runs: number,
  contenders: Readonly<Record<Name, () => Promise<Value> | Value>>,
): Promise<Readonly<Record<Name, readonly Value[]>>> {
  const names = Object.keys(contenders) as Name[];
  const values = Object.fromEntries(names.map((name) => [name, [] as Value[]])) as Record<Name, Value[]>;
  for (let run = 0; run < runs; run++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(run + turn) % names.length] as Name;
      values[name].push(await contenders[name]());
    }
  }
  return values;
}
