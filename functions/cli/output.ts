import { Option } from 'commander';
import type { EpochMs } from '#shared/eviction/identity.ts';

const COLUMN_GAP = '   ';

export type OutputFormat = 'table' | 'json';

/** For commands that show something: to people, or to programs. */
export const outputOption = (): Option =>
  new Option('-o, --output <format>', 'how to show it').choices(['table', 'json']).default('table');

/** To the second, as everything in the cluster. */
export const timeText = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

export const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** Rows in columns as wide as their widest cell; the first row is the heads. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(COLUMN_GAP)
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}
