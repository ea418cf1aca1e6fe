import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green';

/** What is known of where texts are shown. */
export interface Paint {
  /** A text in a colour, where colours are seen. */
  (style: Style, text: string): string;
  /** So many characters have room in a line; absent: any number, for it is no terminal. */
  readonly columns?: number | undefined;
}

/** Colours on a terminal, and what `NO_COLOR` and `FORCE_COLOR` say of it; and how wide it is by now. */
export const terminalPaint: Paint = Object.defineProperty(
  (style: Style, text: string) => styleText(style, text, { stream: process.stdout }),
  'columns',
  { get: () => process.stdout.columns },
);
