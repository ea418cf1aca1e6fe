import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { schemaFault } from './schema-fault.ts';
import { StatusError } from './status.ts';

const path = z
  .string()
  .regex(/^(?:\/(?:[^~/]|~0|~1)*)*$/, 'must be a JSON pointer, for example /spec/taints/0');
const operation = z.discriminatedUnion('op', [
  z.object({ op: z.literal('add'), path, value: z.unknown() }),
  z.object({ op: z.literal('replace'), path, value: z.unknown() }),
  z.object({ op: z.literal('test'), path, value: z.unknown() }),
  z.object({ op: z.literal('remove'), path }),
  z.object({ op: z.literal('move'), path, from: path }),
  z.object({ op: z.literal('copy'), path, from: path }),
]);
type Operation = z.infer<typeof operation>;

const operations = z.array(operation);

/**
 * An object after a JSON patch (RFC 6902), all of it or nothing. Throws 422 for one that is malformed, names
 * what is not there, or whose test fails.
 */
export function jsonPatch(object: unknown, patch: unknown): unknown {
  const parsed = operations.safeParse(patch);
  if (!parsed.success) throw refused(schemaFault(parsed.error));
  return parsed.data.reduce(apply, object);
}

function apply(document: unknown, step: Operation): unknown {
  const at = tokens(step.path);
  switch (step.op) {
    case 'add':
      return changed(document, at, 'add', step.value);
    case 'replace':
      return changed(document, at, 'replace', step.value);
    case 'remove':
      return changed(document, at, 'remove', undefined);
    case 'copy':
      return changed(document, at, 'add', read(document, tokens(step.from)));
    case 'move': {
      const from = tokens(step.from);
      return changed(changed(document, from, 'remove', undefined), at, 'add', read(document, from));
    }
    case 'test':
      if (isDeepStrictEqual(read(document, at), step.value)) return document;
      throw refused(`test of ${step.path} failed`);
    default:
      return step satisfies never;
  }
}

type Edit = 'add' | 'replace' | 'remove';

/** A copy of `document` with the place at `path` edited. */
function changed(document: unknown, [name, ...rest]: readonly string[], edit: Edit, value: unknown): unknown {
  if (name === undefined) return edit === 'remove' ? undefined : value;
  const last = rest.length === 0;
  if (Array.isArray(document)) {
    const index = indexIn(document, name, last && edit === 'add');
    if (!last) return document.with(index, changed(document[index], rest, edit, value));
    return document.toSpliced(index, edit === 'add' ? 0 : 1, ...(edit === 'remove' ? [] : [value]));
  }
  const fields = new Map(entries(document));
  if (!fields.has(name) && !(last && edit === 'add')) throw refused(`there is nothing at ${name}`);
  if (last && edit === 'remove') fields.delete(name);
  else fields.set(name, last ? value : changed(fields.get(name), rest, edit, value));
  return Object.fromEntries(fields);
}

function read(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const name of path) {
    if (Array.isArray(value)) {
      value = value[indexIn(value, name, false)];
      continue;
    }
    const fields = new Map(entries(value));
    if (!fields.has(name)) throw refused(`there is nothing at ${name}`);
    value = fields.get(name);
  }
  return value;
}

function indexIn(list: readonly unknown[], name: string, mayAppend: boolean): number {
  if (name === '-' && mayAppend) return list.length;
  const index = /^(?:0|[1-9][0-9]*)$/.test(name) ? Number(name) : -1;
  if (index < 0 || index >= list.length + (mayAppend ? 1 : 0)) throw refused(`there is no item ${name}`);
  return index;
}

function entries(value: unknown): [string, unknown][] {
  if (typeof value === 'object' && value !== null) return Object.entries(value);
  throw refused('a path leads into what is neither object nor list');
}

/** A pointer's parts, unescaped. */
const tokens = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));

const refused = (why: string) => new StatusError(422, 'Invalid', `the JSON patch does not apply: ${why}`);
