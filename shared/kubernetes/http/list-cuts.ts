import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  checkItems,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-structure.ts';

export interface ListCuts {
  /** After the opening bracket of the items, and at the closing one. */
  readonly begin: number;
  readonly end: number;
  readonly items: readonly (readonly [number, number])[];
}

const ITEMS_KEY = '"items"';
const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/**
 * Finds the items in any formatting, character by character; the last list counts, as for `JSON.parse`. `undefined`:
 * none. If the text is not JSON, at least one part isn't either.
 */
export function exactCuts(json: Buffer): ListCuts | undefined {
  let found: ListCuts | undefined;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE: {
        const end = endOfString(json, at);
        const begin = depth === 1 && isItemsKey(json, at, end) ? beginOfArray(json, end + 1) : undefined;
        if (begin !== undefined) found = cutsFrom(json, begin);
        at = begin === undefined ? end : (found?.end ?? json.length);
        break;
      }
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        break;
      default:
    }
  }
  return found;
}

/** Returns the elements of the array whose opening bracket precedes `begin`; `undefined`: the array does not end. */
function cutsFrom(json: Buffer, begin: number): ListCuts | undefined {
  const items: (readonly [number, number])[] = [];
  let from = begin;
  let depth = 0;
  const cut = (to: number): void => {
    items.push([from, to]);
    checkItems(items.length);
    from = to + 1;
  };
  for (let at = begin; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        break;
      case COMMA:
        if (depth === 0) cut(at);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        if (depth >= 0) break;
        if (items.length > 0 || afterSpace(json, from) < at) cut(at);
        return { begin, end: at, items };
      default:
    }
  }
  return undefined;
}

const isItemsKey = (json: Buffer, from: number, end: number): boolean =>
  end + 1 - from === ITEMS_KEY.length && json.toString('latin1', from, end + 1) === ITEMS_KEY;

/** Returns the position after the opening bracket of an array that is the value of the key that ends before `at`. */
function beginOfArray(json: Buffer, at: number): number | undefined {
  const colon = afterSpace(json, at);
  const bracket = json[colon] === COLON ? afterSpace(json, colon + 1) : json.length;
  return json[bracket] === OPEN_BRACKET ? bracket + 1 : undefined;
}

function afterSpace(json: Buffer, from: number): number {
  let at = from;
  while (isSpace(json[at])) at += 1;
  return at;
}
