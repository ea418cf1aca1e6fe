import { isDeepStrictEqual } from 'node:util';
import { type Fields, fieldsOf, itemsOf } from './json.ts';
import type { Shape } from './schema.ts';

/**
 * A set of fields, each by the path to it. A path's elements are upstream's: `f:<name>`, `k:<keys of a list's item>`,
 * `v:<value of a list's item>`. Upstream: `fieldpath.Set`.
 */
export type FieldSet = ReadonlySet<string>;

/** Stands in no element: names have none, and JSON escapes it. */
const SEPARATOR = '\n';

const below = (path: string, element: string): string => (path === '' ? element : path + SEPARATOR + element);

export const union = (...sets: readonly FieldSet[]): FieldSet => new Set(sets.flatMap((set) => [...set]));
export const difference = (set: FieldSet, ...others: readonly FieldSet[]): FieldSet =>
  new Set([...set].filter((path) => others.every((other) => !other.has(path))));
export const intersection = (set: FieldSet, other: FieldSet): FieldSet =>
  new Set([...set].filter((path) => other.has(path)));

/** As `managedFields` carry it. */
export function toFieldsV1(set: FieldSet): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  const paths = [...set].sort();
  for (const path of paths) {
    let place = root;
    for (const element of path.split(SEPARATOR)) {
      place[element] ??= {};
      place = place[element] as Record<string, unknown>;
    }
    // One that has others below it says that it is owned itself.
    if (paths.some((other) => other.startsWith(path + SEPARATOR))) place['.'] = {};
  }
  return root;
}

export function fromFieldsV1(fields: unknown): FieldSet {
  const paths: string[] = [];
  const visit = (node: Fields, path: string): void => {
    const names = Object.keys(node);
    if (path !== '' && (names.length === 0 || names.includes('.'))) paths.push(path);
    for (const name of names) if (name !== '.') visit(fieldsOf(node[name]), below(path, name));
  };
  visit(fieldsOf(fields), '');
  return new Set(paths);
}

/** A path as upstream writes it: `.spec.containers[name="web"].image`. */
export const pathText = (path: string): string =>
  path
    .split(SEPARATOR)
    .map((element) => {
      const rest = element.slice(2);
      if (element.startsWith('f:')) return `.${rest}`;
      if (element.startsWith('v:')) return `[=${rest}]`;
      const keys = Object.entries(fieldsOf(JSON.parse(rest)));
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');

/** What stands in a value, as a merge sees it: one part by path element, and how that is merged in turn. */
interface Part {
  readonly value: unknown;
  readonly shape: Shape;
  /** Whether it is owned by itself, as the items of lists and the entries of maps are. */
  readonly isItem: boolean;
}

const WHOLE: Shape = { kind: 'whole' };

/** The parts of a value; `undefined` when it is merged whole. */
export function partsOf(value: unknown, shape: Shape): ReadonlyMap<string, Part> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  switch (shape.kind) {
    case 'whole':
      return undefined;
    case 'fields':
      return new Map(
        Object.entries(value).map(([name, field]) => {
          const known = shape.of(name);
          return [`f:${name}`, { value: field, shape: known ?? WHOLE, isItem: known === undefined }];
        }),
      );
    case 'map':
      return new Map(
        Object.entries(value).map(([name, field]) => [
          `f:${name}`,
          { value: field, shape: shape.item, isItem: true },
        ]),
      );
    case 'set':
      return new Map(
        itemsOf(value).map((item) => [
          `v:${JSON.stringify(item)}`,
          { value: item, shape: WHOLE, isItem: true },
        ]),
      );
    case 'keyed':
      return new Map(
        itemsOf(value).map((item) => [
          `k:${JSON.stringify(keysOf(item, shape))}`,
          { value: item, shape: shape.item, isItem: true },
        ]),
      );
    default:
      return shape satisfies never;
  }
}

function keysOf(item: unknown, { keys, defaults }: Extract<Shape, { kind: 'keyed' }>): object {
  const fields = fieldsOf(item);
  const given = [...keys].sort().map((key) => [key, fields[key] ?? defaults[key]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** All fields of a value. Upstream: `TypedValue.ToFieldSet`. */
export function fieldSetOf(value: unknown, shape: Shape): FieldSet {
  const paths: string[] = [];
  collect(value, shape, '', paths);
  return new Set(paths);
}

function collect(value: unknown, shape: Shape, path: string, into: string[]): void {
  const parts = partsOf(value, shape);
  if (parts === undefined || (parts.size === 0 && !Array.isArray(value))) {
    if (path !== '') into.push(path);
    return;
  }
  for (const [element, part] of parts) {
    const at = below(path, element);
    if (part.isItem) into.push(at);
    collect(part.value, part.shape, at, into);
  }
}

/** To Go, a list of nothing is no list. */
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** How a value differs from an earlier one. Upstream: `typed.Comparison`. */
export interface Comparison {
  /** What is new, or other than before. */
  readonly changed: FieldSet;
  readonly removed: FieldSet;
}

export function compare(before: unknown, after: unknown, shape: Shape): Comparison {
  const changed: string[] = [];
  const removed: string[] = [];
  const visit = (old: Part | undefined, next: Part | undefined, path: string): void => {
    const [was, is] = [old, next].map((part) => (isEmptyList(part?.value) ? undefined : part));
    const one = is ?? was;
    if (one === undefined || isDeepStrictEqual(was?.value, is?.value)) return;
    const [before, after] = [was, is].map((part) => part && partsOf(part.value, part.shape));
    if (was !== undefined && is !== undefined) {
      if (before === undefined || after === undefined) {
        changed.push(path);
        return;
      }
      for (const element of new Set([...before.keys(), ...after.keys()])) {
        visit(before.get(element), after.get(element), below(path, element));
      }
      return;
    }
    const into = is === undefined ? removed : changed;
    if (one.isItem) into.push(path);
    collect(one.value, one.shape, path, into);
  };
  visit({ value: before, shape, isItem: false }, { value: after, shape, isItem: false }, '');
  return { changed: new Set(changed), removed: new Set(removed) };
}

/** A value with what another one says in its place. Upstream: `TypedValue.Merge`. */
export function merge(present: unknown, wanted: unknown, shape: Shape): unknown {
  const [old, given] = [partsOf(present, shape), partsOf(wanted, shape)];
  if (old === undefined || given === undefined) return wanted;
  const merged = new Map([...old].map(([element, { value }]) => [element, value]));
  for (const [element, { value, shape: inner }] of given) {
    merged.set(element, merge(old.get(element)?.value, value, inner));
  }
  return assembled(merged, wanted);
}

/**
 * A value without the fields that were let go: those of `last` that are not in `owned`. An object of which nothing is left
 * goes with them. Upstream: `Updater.prune`.
 */
export function prune(value: unknown, shape: Shape, last: FieldSet, owned: FieldSet, path = ''): unknown {
  const parts = partsOf(value, shape);
  if (parts === undefined) return value;
  const isOwned = (at: string): boolean =>
    owned.has(at) || [...owned].some((other) => other.startsWith(at + SEPARATOR));
  const kept = new Map<string, unknown>();
  for (const [element, part] of parts) {
    const at = below(path, element);
    if (last.has(at) && !isOwned(at)) continue;
    const inner = prune(part.value, part.shape, last, owned, at);
    const isEmptied = isEmpty(inner) && !isEmpty(part.value) && !isOwned(at);
    if (!isEmptied) kept.set(element, inner);
  }
  return assembled(kept, value);
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** The parts as one value again, of the kind of `like`. */
const assembled = (parts: ReadonlyMap<string, unknown>, like: unknown): unknown =>
  Array.isArray(like)
    ? [...parts.values()]
    : Object.fromEntries([...parts].map(([element, value]) => [element.slice(2), value]));
