import { existsSync, readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';

/** The aim of a figure: the service's own value, or its ratio to the peer's. */
export interface Aim {
  readonly of: 'value' | 'ratio';
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** One measured number, over all runs. */
export interface Figure {
  /** The unique name of the figure in a scenario's table. */
  readonly what: string;
  readonly unit: string;
  /** The value of each run, in their order; none: it was not reached, and `note` gives the reason. */
  readonly ours: readonly number[];
  /** The values of a peer in the same runs, measured alternately. */
  readonly peer?: { readonly name: string; readonly values: readonly number[] };
  readonly aim?: Aim;
  readonly note?: string;
}

/** Returns the median of the values, the lower of two; `undefined` for an empty list. */
export function median(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

/** Returns the service's median divided by the peer's; `undefined` where one of them is missing. */
export function ratioOf({ ours, peer }: Pick<Figure, 'ours' | 'peer'>): number | undefined {
  const [own, other] = [median(ours), median(peer?.values ?? [])];
  return own === undefined || other === undefined || other === 0 ? undefined : own / other;
}

/** Reports whether a figure meets its aim; `undefined`: it has no aim, or no value. */
export function meetsAim(figure: Figure): boolean | undefined {
  const { aim, ours } = figure;
  const value = aim?.of === 'ratio' ? ratioOf(figure) : median(ours);
  if (aim === undefined || value === undefined) return undefined;
  return value >= (aim.atLeast ?? -Infinity) && value <= (aim.atMost ?? Infinity);
}

/** Returns a description of this machine in a line, without its name. */
export function thisMachine(): string {
  const [first] = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${memoryGiB} GiB, Node ${process.version}`;
}

/** Returns the load of the machine in the last minute, with two decimals. */
export const loadNow = (): number => Math.round((loadavg()[0] ?? 0) * 100) / 100;

/** The processors' times since the machine started; `stolen` by other machines of its host. */
interface Times {
  readonly all: number;
  readonly stolen: number;
}

/** Returns the times of Linux' /proc/stat; zeros where there is none. */
export function timesNow(path = '/proc/stat'): Times {
  if (!existsSync(path)) return { all: 0, stolen: 0 };
  // user, nice, system, idle, iowait, irq, softirq, steal; the guests' times after them are part of the first two.
  const times =
    readFileSync(path, 'utf8').split('\n', 1)[0]?.trim().split(/\s+/).slice(1, 9).map(Number) ?? [];
  return { all: times.reduce((sum, each) => sum + each, 0), stolen: times[7] ?? 0 };
}

/** Returns the share of the processors' time that was stolen since then, 0 to 1. */
export function stolenSince(then: Times, now = timesNow()): number {
  const all = now.all - then.all;
  return all > 0 ? (now.stolen - then.stolen) / all : 0;
}
