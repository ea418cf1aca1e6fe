import { tableText } from '#functions/cli/output.ts';
import type { Paced } from './pace-judge.ts';
import { PROMISES, type PromiseName } from './promises.ts';
import { replayOf, type Shrunk, storyOf } from './shrink.ts';
import { brokenBy, type Sweep } from './sweep.ts';

/** The parameters of a run. */
export interface Run {
  readonly seed: number;
  readonly histories: number;
  readonly seconds: number;
  readonly workers: number;
}

/** Returns the results as tables. */
export function report({ played, tried, compared, paced, violations }: Sweep, run: Run): string {
  const { seed, histories, seconds, workers } = run;
  const all = Object.values(played);
  const evictions = all.reduce((total, each) => total + each.evictions, 0);
  const cpuMs = all.reduce((total, each) => total + each.cpuMs, 0);
  const brokenIn = (promise: string) =>
    violations.filter(({ faults }) => faults.some((fault) => brokenBy(fault) === promise)).length;
  const climates = Object.entries(played).map(([name, playedOnce]) => [
    name,
    String(playedOnce.histories),
    String(playedOnce.evictions),
    (playedOnce.cpuMs / playedOnce.histories).toFixed(1),
    String(violations.filter(({ climate }) => climate === name).length),
  ]);
  const promises = Object.entries(PROMISES).map(([name, words]) => [
    `${name} ${words}`,
    String(tried[name as PromiseName]),
    String(brokenIn(name)),
  ]);
  const { exact, roughly, stayed } = compared;
  return [
    tableText([['climate', 'histories', 'evictions', 'ms each', 'broken'], ...climates]),
    tableText([['promise', 'tried', 'broken'], ...promises]),
    `The naive model agrees on ${exact} evictions to the moment, on ${roughly} where something went wrong, and on ${stayed} pods that stay; histories in which it does not: ${brokenIn('rule')}.`,
    pacedText(paced),
    `${histories} histories (seeds ${seed} to ${seed + histories - 1}), ${evictions} evictions, ${violations.length} histories broken, in ${seconds.toFixed(0)} s by ${workers} at a time (${(histories / seconds).toFixed(1)}/s; ${(cpuMs / 1000).toFixed(0)} s of processors).`,
    '',
  ].join('\n');
}

/** Returns the number of tests of rates, as a sentence. */
export const pacedText = ({ windows }: Paced): string => `Rates were judged in ${windows} spans of time.`;

/** Returns the report of a history that broke a promise, shortened as far as possible. */
export function violationReport(seed: number, shrunk: Shrunk): string {
  return [
    '',
    `seed ${seed}: ${shrunk.fault}`,
    ...storyOf(shrunk).map((line) => `  ${line}`),
    `  played again by: ${replayOf(seed, shrunk.options)}`,
    '',
  ].join('\n');
}

/** A planted defect, and how it was found; `fault` absent: it was not found. */
export interface PlantedFound {
  readonly name: string;
  readonly area: string;
  readonly histories: number;
  readonly fault?: string;
}

/** Returns the results of planted defects, as a table. */
export function plantedReport(found: readonly PlantedFound[]): string {
  const rows = found
    .toSorted((a, b) => (a.area < b.area ? -1 : a.area > b.area ? 1 : 0))
    .map(({ area, name, histories, fault }) => [
      area,
      name,
      fault === undefined ? `not in ${histories}` : String(histories),
      fault === undefined ? '' : (NOTICED_BY[brokenBy(fault)] ?? brokenBy(fault)),
    ]);
  const missed = found.filter(({ fault }) => fault === undefined).length;
  return [
    tableText([['area', 'defect', 'histories', 'noticed by'], ...rows]),
    `${found.length} defects planted, ${missed} not found.`,
    '',
  ].join('\n');
}

const NOTICED_BY: Readonly<Record<string, string>> = { rule: 'the naive model', other: 'what is read' };
