import { type Column, linesText, tableOf } from './output.ts';
import type { Paint } from './paint.ts';

/** Before each line of a part. */
const INDENT = '  ';

/** A part of an answer: a heading, and lines under it. */
export interface Section {
  readonly heading: string;
  /** Without line feeds at their ends; none: the section is left out. */
  readonly lines: readonly string[];
}

/** The answer first, then its parts, each under its heading. */
export function sectionsText(answer: string, sections: readonly Section[], paint: Paint): string {
  const parts = sections
    .filter(({ lines }) => lines.length > 0)
    .map(
      ({ heading, lines }) =>
        `\n${linesText([paint('bold', heading), ...lines.map((line) => `${INDENT}${line}`)])}`,
    );
  return `${linesText([paint('bold', answer)])}${parts.join('')}`;
}

/** The lines of a table, to stand in a part. */
export const tableLines = <Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  look: { readonly wide: boolean; readonly paint: Paint },
): readonly string[] =>
  rows.length === 0
    ? []
    : tableOf(rows, columns, { ...look, indent: INDENT.length })
        .trimEnd()
        .split('\n');
