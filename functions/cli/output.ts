import { type Command, Option } from 'commander';
import { dump } from 'js-yaml';
import { shownLine } from '#shared/text/escape-for-display.ts';
import { layout, widthOf } from './fit.ts';
import type { Paint } from './paint.ts';

const COLUMN_GAP = '   ';
const FORMATS = ['table', 'wide', 'json', 'yaml'] as const;

export type OutputFormat = (typeof FORMATS)[number];

/** For commands that show something: to people (`wide`: with all columns), or to programs. */
export const outputOption = (): Option =>
  new Option('-o, --output <format>', 'output format').choices(FORMATS).default('table');

/** What is shown, either way: both are asked for only if they are. */
export interface Shown {
  /** For programs: JSON, moments as ISO texts. */
  data(): unknown;
  /** For people; ends with a line feed. */
  text(wide: boolean): string;
}

/** What a command that was given {@link outputOption} prints. */
export function shownAs(format: OutputFormat, { data, text }: Shown): string {
  switch (format) {
    case 'json':
      return jsonText(data());
    case 'yaml':
      return yamlText(data());
    case 'table':
    case 'wide':
      return text(format === 'wide');
    default:
      return format satisfies never;
  }
}

/** How long ago, or how long from now on, in its two largest units: `4 m 10 s`. Never below zero. */
export function spanText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return '0 s';
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

export const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** As the JSON of it, so that both say the same. */
const yamlText = (value: unknown): string =>
  dump(JSON.parse(JSON.stringify(value)), { lineWidth: -1, noRefs: true });

/** A column of a table: what it says of a row. */
export interface Column<Row> {
  readonly head: string;
  of(row: Row): string;
  /** Only where there is room for it. */
  readonly wide?: true;
}

/** How a table is shown. */
interface TableLook {
  /** With all columns, however long the lines become. */
  readonly wide: boolean;
  readonly paint: Paint;
  /** So many characters will stand before each line. */
  readonly indent?: number;
}

/** Of a line, for a table. */
export const roomIn = ({ wide, paint }: Pick<TableLook, 'wide' | 'paint'>): number =>
  (wide ? undefined : paint.columns) ?? Number.POSITIVE_INFINITY;

/** A line for each row, under heads; without those columns for which there is no room, and in more lines where that is little. */
export function tableOf<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { wide, paint, indent = 0 }: TableLook,
): string {
  const shown = columns.filter((column) => wide || !column.wide);
  const table = [shown.map(({ head }) => head), ...rows.map((row) => shown.map(({ of }) => of(row)))];
  return tableText(table, roomIn({ wide, paint }) - indent, (head) => paint('bold', head));
}

/** Rows in columns as wide as their widest cell, or as `room` lets them be; the first row is the heads. */
export function tableText(
  given: readonly (readonly string[])[],
  room = Number.POSITIVE_INFINITY,
  head = (text: string): string => text,
): string {
  const rows = given.map((row) => row.map(shownLine));
  const gaps = COLUMN_GAP.length * Math.max(0, (rows[0]?.length ?? 0) - 1);
  const { widths, lines } = layout(rows, room - gaps);
  const padded = (cell: string, column: number) =>
    `${cell}${' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)))}`;
  return rows
    .flatMap((row, index) => {
      const cells = row.map(lines);
      const height = Math.max(...cells.map(({ length }) => length));
      return Array.from({ length: height }, (_, line) =>
        cells
          .map((cell) => cell[line] ?? '')
          .map((text, column) => padded(index === 0 && text !== '' ? head(text) : text, column))
          .join(COLUMN_GAP)
          .trimEnd(),
      );
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Lines for people. Each stays one line, whatever is named within it. */
export const linesText = (lines: readonly string[]): string =>
  lines.map((line) => `${shownLine(line)}\n`).join('');

/** Shows in a command's help how it is used. */
export const withExamples = (command: Command, ...examples: readonly string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${examples.map((each) => `  ${each}`).join('\n')}`);
