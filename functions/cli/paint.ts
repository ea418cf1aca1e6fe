import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green';

/** A text in a colour, where colours are seen. */
export type Paint = (style: Style, text: string) => string;

/** Colours on a terminal, and what `NO_COLOR` and `FORCE_COLOR` say of it. */
export const terminalPaint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });
