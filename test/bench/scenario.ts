import type { Figure } from './result.ts';

export interface BenchOptions {
  /** How often ours and its peer take turns; absent: as often as the scenario thinks right. */
  readonly runs: number | undefined;
  /** Within seconds, for CI: shows that it works, and is no measurement. */
  readonly short: boolean;
  /** How long the relay's soak takes. */
  readonly soakMinutes: number;
}

/** Measures something beside a peer; its figures go to `tell`, so that what comes before a failure is not lost. */
export interface Scenario {
  readonly about: string;
  run(tell: (figure: Figure) => void, options: BenchOptions): Promise<void>;
}

/** What a scenario, or a peer of it, needs is not here; the message says what, and how to have it. */
export class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/** Lets all take turns, `runs` times over, beginning with another one each time; returns what each gave, run by run. */
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
