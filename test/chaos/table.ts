import type { Report, Spread } from './chaos.ts';
import type { Violation } from './judge.ts';

const KINDS: readonly Violation['kind'][] = ['lost', 'wrong', 'early', 'doubled'];

/** Returns a report as a table of two columns. */
export function table(report: Report & { readonly form: string }): string {
  const { delayMs, readAgeMs, violations } = report;
  const rows: readonly (readonly [string, string])[] = [
    ['form', report.form],
    ['seed', String(report.seed)],
    ['nodes × pods', `${report.nodes} × ${report.podsPerNode}, ${report.pods} pods in all`],
    ['minutes', `${report.minutes}, and ${seconds(report.settledAfterMs)} until nothing was due`],
    ['done', listed(report.done)],
    ['faults', listed(report.faults)],
    ['requests', `${report.requests}, hit: ${listed(report.requestsHit)}`],
    ['evictions', String(report.evictions)],
    ['late', spread(delayMs)],
    ['decided by a look', `${spread(readAgeMs)} ago`],
    ['saved while due', `${report.saved}, after ${seconds(report.savedAfterMs)} at the longest`],
    ...KINDS.map((kind) => [kind, String(violations.filter((each) => each.kind === kind).length)] as const),
    ['ended by itself', String(report.crashes.length)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`;

const spread = ({ p50, p99, longest }: Spread): string =>
  `p50 ${seconds(p50)}, p99 ${seconds(p99)}, longest ${seconds(longest)}`;

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
