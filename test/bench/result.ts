import { cpus, loadavg, totalmem } from 'node:os';
import * as z from 'zod';

const aim = z.strictObject({
  /** What is held to it: our own value, or ours divided by the peer's. */
  of: z.enum(['value', 'ratio']),
  atLeast: z.number().optional(),
  atMost: z.number().optional(),
});

const figure = z.strictObject({
  /** What was measured, as a table names it; no other figure of a scenario is named so. */
  what: z.string().min(1),
  unit: z.string(),
  better: z.enum(['more', 'less']),
  /** The value of each run, in their order; none: it was not reached, and `note` says why. */
  ours: z.array(z.number()),
  /** What else did the same in the same run, turn by turn with ours. */
  peer: z.strictObject({ name: z.string().min(1), values: z.array(z.number()) }).optional(),
  aim: aim.optional(),
  note: z.string().optional(),
});

/** One measured number, over all runs. */
export type Figure = z.output<typeof figure>;
export type Aim = z.output<typeof aim>;

const load = z.tuple([z.number(), z.number(), z.number()]);

/** What a scenario's file holds. */
export const resultSchema = z.strictObject({
  scenario: z.string(),
  about: z.string(),
  command: z.string(),
  /** ISO 8601. */
  measuredAt: z.iso.datetime(),
  tookSeconds: z.int(),
  machine: z.strictObject({
    cpu: z.string(),
    cores: z.int(),
    memoryGiB: z.number(),
    arch: z.string(),
    node: z.string(),
  }),
  /** Load averages over 1, 5 and 15 minutes; before, they are all others' work. */
  load: z.strictObject({ before: load, after: load }),
  figures: z.array(figure),
});

export type Result = z.output<typeof resultSchema>;

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

/** The machine of now, without its name. */
export function thisMachine(): Result['machine'] {
  const [first] = cpus();
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    arch: process.arch,
    node: process.version,
  };
}

/** How busy the machine is, with two decimals. */
export function loadNow(): Result['load']['before'] {
  const [one = 0, five = 0, fifteen = 0] = loadavg().map((each) => Math.round(each * 100) / 100);
  return [one, five, fifteen];
}
