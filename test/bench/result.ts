import { cpus, loadavg, totalmem } from 'node:os';

/** What a figure is held to: our own value, or ours divided by the peer's. */
export interface Aim {
  readonly of: 'value' | 'ratio';
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** One measured number, over all runs. */
export interface Figure {
  /** What was measured, as a table names it; no other figure of a scenario is named so. */
  readonly what: string;
  readonly unit: string;
  /** The value of each run, in their order; none: it was not reached, and `note` says why. */
  readonly ours: readonly number[];
  /** What else did the same in the same run, turn by turn with ours. */
  readonly peer?: { readonly name: string; readonly values: readonly number[] };
  readonly aim?: Aim;
  readonly note?: string;
}

/** The middle one of the values, the lower of two; `undefined` of none. */
export function median(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

/** The median of ours divided by that of the peer; `undefined` where one of them is missing. */
export function ratioOf({ ours, peer }: Pick<Figure, 'ours' | 'peer'>): number | undefined {
  const [own, other] = [median(ours), median(peer?.values ?? [])];
  return own === undefined || other === undefined || other === 0 ? undefined : own / other;
}

/** Whether a figure is as it was to be; `undefined`: nothing was aimed at, or nothing was measured. */
export function meetsAim(figure: Figure): boolean | undefined {
  const { aim, ours } = figure;
  const value = aim?.of === 'ratio' ? ratioOf(figure) : median(ours);
  if (aim === undefined || value === undefined) return undefined;
  return value >= (aim.atLeast ?? -Infinity) && value <= (aim.atMost ?? Infinity);
}

/** The machine of now in a line, without its name. */
export function thisMachine(): string {
  const [first] = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${memoryGiB} GiB, Node ${process.version}`;
}

/** How busy the machine was in the last minute, with two decimals. */
export const loadNow = (): number => Math.round((loadavg()[0] ?? 0) * 100) / 100;
