/** Control characters, separators of lines, halves of characters, and what XML and so SQS knows no character at. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\ufffe\uffff]/gu;

/** A text of another hand as a part of a sentence of ours: on one line, and cut beyond `most` characters. */
export function printable(text: string, most = 200): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(UNPRINTABLE, '\ufffd');
}
