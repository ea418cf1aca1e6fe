import type { Paint } from './paint.ts';

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
      ({ heading, lines }) => `\n${paint('bold', heading)}\n${lines.map((line) => `  ${line}\n`).join('')}`,
    );
  return `${paint('bold', answer)}\n${parts.join('')}`;
}

/** The lines of a table, to stand in a section. */
export const linesOf = (text: string): readonly string[] => text.trimEnd().split('\n');
