import { isDeepStrictEqual } from 'node:util';

/*
 * The difference between two JSON values, as JSON. Objects, and lists of equal length, are compared entry by entry. For
 * other lists, the difference is a splice.
 */
type Fields = Readonly<Record<string, unknown>>;
/** Changed entries of a list, by index. */
interface Entries {
  readonly entries: Fields;
}
/** Entries of a list that replace a number of entries at an index. */
interface Splice {
  readonly at: number;
  readonly gone: number;
  readonly come: readonly unknown[];
}

/** Marks a removed field. */
const GONE = '(gone)';

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the changes from `before` to `after`, or `undefined` if they are equal. */
export function changesOf(before: unknown, after: unknown): unknown {
  if (isDeepStrictEqual(before, after)) return undefined;
  if (isFields(before) && isFields(after)) return fieldsOf(before, after);
  if (!Array.isArray(before) || !Array.isArray(after)) return after;
  if (before.length !== after.length) return spliceOf(before, after);
  return { entries: fieldsOf({ ...before }, { ...after }) } satisfies Entries;
}

const fieldsOf = (before: Fields, after: Fields): Fields =>
  Object.fromEntries(
    Object.keys({ ...before, ...after }).flatMap((name) => {
      const change = name in after ? changesOf(before[name], after[name]) : GONE;
      return change === undefined ? [] : [[name, change]];
    }),
  );

function spliceOf(before: readonly unknown[], after: readonly unknown[]): Splice {
  const shorter = Math.min(before.length, after.length);
  let at = 0;
  while (at < shorter && isDeepStrictEqual(before[at], after[at])) at += 1;
  let tail = 0;
  while (tail < shorter - at && isDeepStrictEqual(before.at(-1 - tail), after.at(-1 - tail))) tail += 1;
  return { at, gone: before.length - tail - at, come: after.slice(at, after.length - tail) };
}

/** Returns a value with changes applied. */
export function changed(before: unknown, changes: unknown): unknown {
  if (changes === undefined) return before;
  if (!isFields(changes)) return changes;
  if (isFields(before)) return withFields(before, changes);
  if (!Array.isArray(before)) return changes;
  const { entries, at, gone, come } = changes as unknown as Partial<Entries & Splice>;
  if (entries) return Object.values(withFields({ ...before }, entries));
  return come ? before.toSpliced(at ?? 0, gone ?? 0, ...come) : changes;
}

const withFields = (before: Fields, changes: Fields): Fields =>
  Object.fromEntries(
    Object.keys({ ...before, ...changes })
      .filter((name) => changes[name] !== GONE)
      .map((name) => [name, changed(before[name], changes[name])]),
  );
