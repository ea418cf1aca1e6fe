import { fieldsOf, itemsOf, parseInt64Json } from './api-json.ts';
import type { Trim } from './bulk.ts';
import { paced } from './pace.ts';

const ITEMS = '"items":[';
/** How the API server writes the end of an item of a list and the beginning of the next. */
const BETWEEN = '},{"metadata":{"name":"';

/** What a list's answer holds. */
export interface ListJson<T> {
  readonly metadata: unknown;
  readonly items: readonly T[];
}

/**
 * Reads a list as `read` reads its items, without its whole JSON ever being in the memory as objects; other work goes on
 * meanwhile. `trim` takes from an item what `read` does not need. Throws `SyntaxError` for a text that is not JSON, and what `read` throws.
 *
 * The text is cut where items seem to meet. If each cut is JSON by itself, the cuts are the items: no JSON text can be
 * read in two ways. If one is not, the text is read as a whole.
 */
export async function readListJson<T>(
  json: Buffer,
  read: (item: unknown) => T,
  trim: Trim,
): Promise<ListJson<T>> {
  const cut = cutsOf(json);
  if (cut === undefined) return readWhole(json, read);
  const { frame, cuts } = cut;
  const { metadata } = fieldsOf(frame);
  const items: T[] = [];
  for (const [from, to] of cuts) {
    const text = json.subarray(from, to);
    const item = parsed(trim(text, 1)) ?? parsed(text.toString());
    if (item === undefined) return readWhole(json, read);
    items.push(read(item));
    await paced();
  }
  return { metadata, items };
}

function readWhole<T>(json: Buffer, read: (item: unknown) => T) {
  const { metadata, items } = fieldsOf(parseInt64Json(json.toString()));
  return { metadata, items: itemsOf(items).map(read) };
}

/** Where the items are, and the list without them; `undefined` when that is not plain. */
function cutsOf(json: Buffer) {
  const at = json.indexOf(ITEMS);
  const begin = at + ITEMS.length;
  const end = json.lastIndexOf(']}');
  if (at < 0 || end <= begin) return undefined;
  // With a mark in their place, which is not an item: it tells whether they are the list's own.
  const frame = parsed(`${json.toString('utf8', 0, begin)}0${json.toString('utf8', end)}`);
  const [mark, ...others] = itemsOf(fieldsOf(frame)['items']);
  if (mark !== 0 || others.length > 0) return undefined;
  const cuts: (readonly [number, number])[] = [];
  let from = begin;
  for (let to = json.indexOf(BETWEEN, from); to >= 0; to = json.indexOf(BETWEEN, from)) {
    cuts.push([from, to + 1]);
    from = to + 2;
  }
  cuts.push([from, end]);
  return { frame, cuts };
}

/** An object; `undefined` when the text is none. */
function parsed(text: string): object | undefined {
  try {
    const value = parseInt64Json(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
