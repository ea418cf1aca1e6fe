/**
 * Characters that are escaped:
 *
 * - Characters that a terminal or an editor interprets instead of showing: C0 and C1 controls except tabs, line and
 *   paragraph separators, and characters that change the text's direction (UTS 55, "Trojan Source").
 * - Code points that XML, and so SQS, doesn't accept as characters: surrogates, U+FFFE and U+FFFF.
 */
const UNSHOWN = /(?!\t)[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu;
/**
 * Sequences that `styleText` writes around text that is bold, dim, or colored. They do nothing else, even in text from
 * other sources.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin so
const STYLE = /(\u001b\[(?:1|2|22|3[1-6]|39)m)/;
const LINE_END = /(\r?\n)/;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Applies `show` to the text between the matches of `kept`, which stay. */
const between = (text: string, kept: RegExp, show: (part: string) => string): string =>
  text
    .split(kept)
    .map((part, index) => (index % 2 === 0 ? show(part) : part))
    .join('');

/**
 * Returns any text as one line that is safe to display, and that every queue accepts. Other characters are written as
 * in JSON, like `\u001b`. The text is cut to `most` characters.
 */
export function escapeForDisplay(text: string, most = Number.POSITIVE_INFINITY): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(UNSHOWN, escaped);
}

/** Does the same for a line that may have colors. */
export const shownLine = (line: string): string => between(line, STYLE, (part) => escapeForDisplay(part));

/** Does the same for whole lines. JSON keeps its meaning. */
export const shownLines = (text: string): string => between(text, LINE_END, shownLine);
