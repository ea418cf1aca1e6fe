import { fieldsOf, itemsOf, parseInt64Json } from './api-json.ts';
import type { Trim } from './bulk.ts';
import { checkItems, checkStructure } from './json-structure.ts';
import { exactCuts, type ListCuts } from './list-cuts.ts';
import { paced } from './pace.ts';

const ITEMS = '"items":[';
/** The API server's text between two items of a list. */
const BETWEEN = '},{"metadata":{"name":"';

export interface ListJson<T> {
  readonly metadata: unknown;
  readonly items: readonly T[];
}

/**
 * Reads a list, with `read` for its items, without ever holding its whole JSON as objects in memory. Other work
 * continues meanwhile. `trim` removes parts of an item that `read` does not need. Throws `SyntaxError` for a text
 * that is not JSON, `AnswerLimitError` for a text beyond a limit, and errors of `read`.
 *
 * The text is cut where items seem to meet. If each cut is JSON by itself, the cuts are the items: no JSON text can
 * be read in two ways. Otherwise, the text is searched for the actual item boundaries.
 */
export async function readListJson<T>(
  json: Buffer,
  read: (item: unknown) => T,
  trim: Trim,
): Promise<ListJson<T>> {
  const cuts = likelyCuts(json);
  const parse = (item: Buffer) => parsed(trim(item, 1)) ?? parsed(item.toString());
  const list = cuts && (await readCuts(json, cuts, parse, read));
  return list ?? readExactly(json, read);
}

async function readExactly<T>(json: Buffer, read: (item: unknown) => T): Promise<ListJson<T>> {
  const cuts = exactCuts(json);
  const list = cuts && (await readCuts(json, cuts, parsedWhole, read));
  if (list) return list;
  const { metadata, items } = fieldsOf(parsedWhole(json));
  checkItems(itemsOf(items).length);
  return { metadata, items: itemsOf(items).map(read) };
}

/** `parse` returns `undefined` for what is no item. Resolves with `undefined` if the cuts are not where items meet. */
async function readCuts<T>(
  json: Buffer,
  { begin, end, items: cuts }: ListCuts,
  parse: (item: Buffer) => unknown,
  read: (item: unknown) => T,
): Promise<ListJson<T> | undefined> {
  // A mark, which is not an item, replaces the items. It shows whether the items are the list's own.
  const frame = parsed(`${json.toString('utf8', 0, begin)}0${json.toString('utf8', end)}`);
  const { metadata, items: marked } = fieldsOf(frame);
  const [mark, ...others] = itemsOf(marked);
  if (mark !== 0 || others.length > 0) return undefined;
  const items: T[] = [];
  for (const [from, to] of cuts) {
    const item = parse(json.subarray(from, to));
    if (item === undefined) return undefined;
    items.push(read(item));
    await paced();
  }
  return { metadata, items };
}

/** Returns where the items seem to be, in the API server's usual formatting; `undefined`: that is not clear. */
function likelyCuts(json: Buffer): ListCuts | undefined {
  const at = json.indexOf(ITEMS);
  const begin = at + ITEMS.length;
  const end = json.lastIndexOf(']}');
  if (at < 0 || end <= begin) return undefined;
  const items: (readonly [number, number])[] = [];
  let from = begin;
  for (let to = json.indexOf(BETWEEN, from); to >= 0; to = json.indexOf(BETWEEN, from)) {
    items.push([from, to + 1]);
    checkItems(items.length);
    from = to + 2;
  }
  items.push([from, end]);
  checkItems(items.length);
  return { begin, end, items };
}

function parsed(json: string): object | undefined {
  checkStructure(json);
  try {
    const value = parseInt64Json(json);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function parsedWhole(json: Buffer): unknown {
  checkStructure(json);
  return parseInt64Json(json.toString());
}
