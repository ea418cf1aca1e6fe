/**
 * Characters that a terminal or an editor acts upon instead of showing them: C0 and C1 controls but tabs, line and
 * paragraph separators, and those that change the direction of what follows (UTS 55, "Trojan Source"). And what XML, and
 * so SQS, knows no character at: halves of characters, U+FFFE and U+FFFF.
 */
const UNSHOWN = /(?!\t)[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu;
/** What `styleText` writes around a text that is bold, dim or in a colour. In the hands of others it does no more than that. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin so
const STYLE = /(\u001b\[(?:1|2|22|3[1-6]|39)m)/;
const LINE_END = /(\r?\n)/;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The text without what `kept` finds of it, which stays. */
const between = (text: string, kept: RegExp, show: (part: string) => string): string =>
  text
    .split(kept)
    .map((part, index) => (index % 2 === 0 ? show(part) : part))
    .join('');

/**
 * A text of anybody's as one line that can only be read, and that every queue takes: other characters are written as in
 * JSON, like `\u001b`. Beyond `most` characters it is cut.
 */
export function escapeForDisplay(text: string, most = Number.POSITIVE_INFINITY): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(UNSHOWN, escaped);
}

/** Likewise, for a line that may have colours. */
export const shownLine = (line: string): string => between(line, STYLE, (part) => escapeForDisplay(part));

/** Likewise, for whole lines. JSON means what it meant. */
export const shownLines = (text: string): string => between(text, LINE_END, shownLine);
