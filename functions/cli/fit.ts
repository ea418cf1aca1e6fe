import { stripVTControlCharacters } from 'node:util';

/** What of a cell stays together in a line: a word, or a number with its unit. */
const WORDS = /\s*(?:\d+ [dhms]\b|\S+)/g;
/** The same where that is too long: day and time, and the parts of names, each with the mark that ends it; none is tiny. */
const PARTS = /\s*(?:\d+ [dhms]\b|\d{4}-\d\d-\d\dT|[\d:.]+Z|[^\s/:=,]{6,}?-|[^\s/:=,]*[/:=,]+|[^\s/:=,]+)/g;

type Columns = readonly (readonly string[])[];

/** How much of a line a text takes on a terminal. */
export const widthOf = (text: string): number => stripVTControlCharacters(text).length;

/** How a table is laid out. */
export interface Layout {
  /** Of each column. */
  readonly widths: readonly number[];
  /** A cell as lines of its column. */
  lines(cell: string, column: number): readonly string[];
}

/**
 * Lays out rows in so much `room` of a line, the gaps between columns left out: the widest columns give way first, their cells go on
 * in further lines at spaces and, where that is not enough, within names. Nothing is cut off: where even that is not enough, lines
 * are longer.
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

/** The widths of columns under the highest bound that the room allows, but of none below that of its widest piece. */
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

/** A cell in colour stays whole: what follows it in its line would have that colour, too. */
const piecesOf = (cell: string, pieces: RegExp): readonly string[] =>
  stripVTControlCharacters(cell) === cell ? (cell.match(pieces) ?? [cell]) : [cell];

const widest = (texts: readonly string[]): number =>
  texts.reduce((most, text) => Math.max(most, widthOf(text)), 0);

const sumOf = (widths: readonly number[]): number => widths.reduce((sum, width) => sum + width, 0);
