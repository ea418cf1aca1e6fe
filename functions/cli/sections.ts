import { type Column, linesText, type TableLayout, tableOf } from './output.ts';
import type { Paint } from './paint.ts';

const INDENT = '  ';

export interface Section {
  readonly heading: string;
  /** Lines without line feeds. A section without lines is left out. */
  readonly lines: readonly string[];
}

/** Returns the answer, followed by its sections with their headings. */
export function sectionsText(answer: string, sections: readonly Section[], paint: Paint): string {
  const parts = sections
    .filter(({ lines }) => lines.length > 0)
    .map(
      ({ heading, lines }) =>
        `\n${linesText([paint('bold', heading), ...lines.map((line) => `${INDENT}${line}`)])}`,
    );
  return `${linesText([paint('bold', answer)])}${parts.join('')}`;
}

export const tableLines = <Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  layout: TableLayout,
): readonly string[] =>
  rows.length === 0
    ? []
    : tableOf(rows, columns, { ...layout, indent: INDENT.length })
        .trimEnd()
        .split('\n');
