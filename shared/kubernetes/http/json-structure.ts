import { ANSWER_BYTES, ANSWER_STRUCTURE, AnswerLimitError, tooManyBytes } from './answer-limits.ts';

/* Bytes that structure a JSON text. */
export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const [COMMA, COLON] = [0x2c, 0x3a];
export const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Checks a text without creating its strings. Throws `AnswerLimitError`. Texts of up to 1.5 MiB can't have too many
 * structural characters.
 */
export function checkStructure(json: string | Buffer): void {
  const { characters, depth: deepest } = ANSWER_STRUCTURE;
  if (json.length <= characters) return;
  // A list is parsed item by item; its text as a whole would take twice the heap.
  if (json.length > ANSWER_BYTES.object) throw tooManyBytes(ANSWER_BYTES.object, ' in one object');
  const text = typeof json === 'string' ? Buffer.from(json) : json;
  let [count, depth] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        count += 1;
        depth += 1;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        break;
      case COMMA:
      case COLON:
        count += 1;
        break;
      default:
    }
    if (depth > deepest) throw tooDeep();
    if (count > characters) throw tooManyValues();
  }
}

export function endOfString(text: Buffer, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Throws `AnswerLimitError` if a list has too many items. */
export function checkItems(count: number): void {
  const { items } = ANSWER_STRUCTURE;
  if (count > items) throw new AnswerLimitError(`its list has more than ${items} items`);
}

/** Counts the kept values of the items of a list. */
export class KeptCount {
  #values = 0;

  /** Throws `AnswerLimitError` beyond the limit of one list. */
  add(values: number): void {
    const { kept } = ANSWER_STRUCTURE;
    this.#values += values;
    if (this.#values <= kept) return;
    throw new AnswerLimitError(
      `the items of its list have more than ${kept} tolerations, labels, annotations, finalizers and taints`,
    );
  }
}

const tooManyValues = (): AnswerLimitError =>
  new AnswerLimitError(
    `one object of its answer has more than ${ANSWER_STRUCTURE.characters} structural characters ({, [, : and ,)`,
  );

const tooDeep = (): AnswerLimitError =>
  new AnswerLimitError(`its answer nests objects and arrays more than ${ANSWER_STRUCTURE.depth} deep`);
