import { type Command, Option } from 'commander';
import { dump } from 'js-yaml';
import { shownLine } from '#shared/text/escape-for-display.ts';
import { layout, widthOf } from './fit.ts';
import type { Paint } from './paint.ts';

const COLUMN_GAP = '   ';
const FORMATS = ['table', 'wide', 'json', 'yaml'] as const;

export type OutputFormat = (typeof FORMATS)[number];

/** The output format of commands that show something: for people (`wide`: all columns) or for programs. */
export const outputOption = (description = 'output format'): Option =>
  new Option('-o, --output <format>', description).choices(FORMATS).default('table');

/** An answer in both forms. Only the requested form is computed. */
export interface Shown {
  /** Returns the answer for programs, of the type that docs/generator/outputs.ts has for the command. */
  data(): unknown;
  /** Returns the answer for people. It ends with a line feed. */
  text(layout: TableLayout): string;
}

export interface TableLayout {
  /** Shows all columns, however long the lines are. */
  readonly wide: boolean;
  readonly paint: Paint;
  /** Number of characters that precede each line. */
  readonly indent?: number;
}

/** Prints an answer in the format that {@link outputOption} selected. */
export const printShown = (
  shown: Shown,
  format: OutputFormat,
  { print, paint }: { print(text: string): void; readonly paint: Paint },
): void => print(shownAs(format, shown, paint));

/** Returns the answer in the format that {@link outputOption} selected. */
export function shownAs(format: OutputFormat, { data, text }: Shown, paint: Paint): string {
  switch (format) {
    case 'json':
      return jsonText(withTimes(data()));
    case 'yaml':
      return yamlText(withTimes(data()));
    case 'table':
    case 'wide':
      return text({ wide: format === 'wide', paint });
    default:
      return format satisfies never;
  }
}

/** Names of fields that hold a time. */
const MOMENT = /^(?:at|since|time|timeAdded|until)$|(?:At|Until)$/;

/** Returns an answer with its times in ISO 8601. The body of a message stays as it was sent. */
export function withTimes(value: unknown, field = ''): unknown {
  if (typeof value === 'number' && MOMENT.test(field)) return new Date(value).toISOString();
  if (Array.isArray(value)) return value.map((each) => withTimes(each));
  if (value === null || typeof value !== 'object' || field === 'body') return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withTimes(part, name)]));
}

export const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

const yamlText = (value: unknown): string =>
  dump(JSON.parse(JSON.stringify(value)), { lineWidth: -1, noRefs: true });

export interface Column<Row> {
  readonly head: string;
  of(row: Row): string;
  /** Shown only if all columns are shown. */
  readonly wide?: true;
}

export const roomIn = ({ wide, paint }: TableLayout): number =>
  (wide ? undefined : paint.columns) ?? Number.POSITIVE_INFINITY;

/** Wide columns are left out unless `wide` is set, and rows wrap if the line is too short. */
export function tableOf<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { wide, paint, indent = 0 }: TableLayout,
): string {
  const shown = columns.filter((column) => wide || !column.wide);
  const table = [shown.map(({ head }) => head), ...rows.map((row) => shown.map(({ of }) => of(row)))];
  return tableText(table, roomIn({ wide, paint }) - indent, (head) => paint('bold', head));
}

/** Returns a list as a table, or the sentence `none` if it is empty. `data`: the same for programs. */
export const listShown = <Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  none: string,
  data: () => unknown = () => rows,
): Shown => ({
  data,
  text: (layout) => (rows.length === 0 ? `${none}\n` : tableOf(rows, columns, layout)),
});

/** Columns are as wide as their widest cell, or as `room` allows. The first row holds the heads. */
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

/** Returns lines for people. Line feeds within a line are escaped, so each stays one line. */
export const linesText = (lines: readonly string[]): string =>
  lines.map((line) => `${shownLine(line)}\n`).join('');

/** Adds examples to a command's help. */
export const withExamples = (command: Command, ...examples: readonly string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${examples.map((each) => `  ${each}`).join('\n')}`);
