import { stripVTControlCharacters } from 'node:util';

/** Parts of a cell that are not broken across lines: a word, or a number with its unit. */
const WORDS = /\s*(?:\d+ [dhms]\b|\S+)/g;
/** Smaller parts for long words: day, time, and parts of names, each with its end mark, and none tiny. */
const PARTS = /\s*(?:\d+ [dhms]\b|\d{4}-\d\d-\d\dT|[\d:.]+Z|[^\s/:=,]{6,}?-|[^\s/:=,]*[/:=,]+|[^\s/:=,]+)/g;

type Columns = readonly (readonly string[])[];

export const widthOf = (text: string): number => stripVTControlCharacters(text).length;

export interface Layout {
  readonly widths: readonly number[];
  lines(cell: string, column: number): readonly string[];
}

/**
 * Lays out rows in `room` characters, not counting gaps. The widest columns are wrapped first, at spaces and, if
 * necessary, within names. No text is cut off: lines are longer instead.
 */
export function layout(rows: readonly (readonly string[])[], room: number): Layout {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ''));
  const whole = columns.map(widest);
  if (sumOf(whole) <= room) return { widths: whole, lines: (cell) => [cell] };
  const byWords = narrowed(columns, WORDS, room);
  const [widths, pieces] =
    sumOf(byWords) <= room ? [byWords, WORDS] : [narrowed(columns, PARTS, room), PARTS];
  return { widths, lines: (cell, column) => wrapped(cell, widths[column] ?? 0, pieces) };
}

/** Widths under the highest bound that fits. No column is narrower than its widest piece. */
function narrowed(columns: Columns, pieces: RegExp, room: number): readonly number[] {
  const least = columns.map((cells) =>
    widest(cells.flatMap((cell) => piecesOf(cell, pieces)).map((piece) => piece.trimStart())),
  );
  const whole = columns.map(widest);
  for (let bound = Math.max(...whole); bound > 0; bound--) {
    const widths = whole.map((width, column) => Math.min(width, Math.max(least[column] ?? 0, bound)));
    if (sumOf(widths) <= room) return widths;
  }
  return least;
}

function wrapped(cell: string, width: number, pieces: RegExp): readonly string[] {
  if (widthOf(cell) <= width) return [cell];
  const lines: string[] = [];
  let line = '';
  for (const piece of piecesOf(cell, pieces)) {
    const isFull = line !== '' && widthOf(line) + widthOf(piece) > width;
    if (isFull) lines.push(line);
    line = isFull || line === '' ? piece.trimStart() : line + piece;
  }
  return [...lines, line];
}

/** Returns a colored cell whole: if it were wrapped, the rest of the line would have its color, too. */
const piecesOf = (cell: string, pieces: RegExp): readonly string[] =>
  stripVTControlCharacters(cell) === cell ? (cell.match(pieces) ?? [cell]) : [cell];

const widest = (texts: readonly string[]): number =>
  texts.reduce((most, text) => Math.max(most, widthOf(text)), 0);

const sumOf = (widths: readonly number[]): number => widths.reduce((sum, width) => sum + width, 0);
