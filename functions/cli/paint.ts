import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green';

export interface Paint {
  /** Returns a text in a color, if the output shows colors. */
  (style: Style, text: string): string;
  /** Number of characters in a line. Absent: no limit, because the output is not a terminal. */
  readonly columns?: number | undefined;
}

/** On terminals, unless `NO_COLOR` or `FORCE_COLOR` decides. `columns`: the terminal's current width. */
export const terminalPaint: Paint = Object.defineProperty(
  (style: Style, text: string) => styleText(style, text, { stream: process.stdout }),
  'columns',
  { get: () => process.stdout.columns },
);
