import type { IncomingMessage } from 'node:http';
import { apply, JSONPatchError, type JSONValue, type OpObject } from 'json-p3';
import * as z from 'zod';
import { type Fields, fieldsOf, parseJson, stringifyJson } from '../objects/json.ts';
import { badRequest, StatusError, schemaFault } from '../objects/status.ts';
import { mediaType } from './media-type.ts';

/** What a PATCH makes of an object. Throws 400 for one without a patch. */
export function patched(request: IncomingMessage, object: unknown, patch: unknown): unknown {
  const apply = PATCHES[mediaType(request)];
  if (apply === undefined || patch === undefined) throw badRequest('the request has no patch: send one');
  return apply(object, patch);
}

/** By the media type of its body. They never change the object itself. */
export const PATCHES: Readonly<Record<string, (object: unknown, patch: unknown) => unknown>> = {
  'application/strategic-merge-patch+json': strategicMergePatch,
  'application/merge-patch+json': mergePatch,
  'application/json-patch+json': jsonPatch,
};

/** A value after a JSON merge patch (RFC 7386): null removes a field, objects are merged, all else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = Array.isArray(target) ? {} : { ...fieldsOf(target) };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

const pointer = z
  .string()
  .regex(/^(?:\/(?:[^~/]|~0|~1)*)*$/, 'must be a JSON pointer, for example /spec/taints/0');
const operations = z.array(
  z.looseObject({ op: z.string(), path: pointer, from: pointer.exactOptional() }),
  'must be a list of operations',
);

/**
 * An object after a JSON patch (RFC 6902), all of it or nothing. Throws 422 for one that is malformed, names
 * what is not there, or whose test fails.
 */
export function jsonPatch(object: unknown, patch: unknown): unknown {
  const parsed = operations.safeParse(patch);
  if (!parsed.success) throw refused(schemaFault(parsed.error));
  return parsed.data.reduce((document, step, index) => after(document, step as OpObject, index), object);
}

/** The library changes a document in place, and what it copies is shared by both places: each step gets its own. */
function after(document: unknown, step: OpObject, index: number): unknown {
  const own = parseJson(stringifyJson(document as object)) as JSONValue;
  try {
    return apply([step], own);
  } catch (error) {
    if (!(error instanceof JSONPatchError)) throw error;
    // The library ends its sentences with the place of the step, which alone is always the first.
    const why = error.message.replace(/ \(\w+:0\)$/, '');
    throw refused(`operation ${index}, ${step.op} of ${step.path}: ${why}`);
  }
}

const refused = (why: string) => new StatusError(422, 'Invalid', `the JSON patch does not apply: ${why}`);

/** Lists of objects that are merged item by item, and by which field. Every other list is replaced whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  'metadata.ownerReferences': 'uid',
  'spec.containers': 'name',
  'spec.initContainers': 'name',
  'spec.volumes': 'name',
  'status.addresses': 'type',
  'status.conditions': 'type',
  'status.podIPs': 'ip',
};

const DIRECTIVE = '$patch';
const ORDER_PREFIX = '$setElementOrder/';

/**
 * A node or a pod after a strategic merge patch: null removes a field, objects are merged, lists are merged by
 * their key where they have one and replaced otherwise; with the directives `$patch` (replace, delete, merge)
 * and `$setElementOrder`. Throws 400 for a patch that is no object, or for directives this cluster does not know.
 * Upstream: `strategicpatch.StrategicMergePatch`.
 */
export function strategicMergePatch(object: unknown, patch: unknown): unknown {
  return mergeFields('', fieldsOf(object), objectOf('the patch', patch));
}

function mergeFields(path: string, object: Fields, patch: Fields): Fields {
  const { [DIRECTIVE]: directive, ...fields } = patch;
  if (directive === 'replace') return fields;
  if (directive === 'delete') return {};
  refuseUnknownDirective(directive);
  const merged: Record<string, unknown> = { ...object };
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith(ORDER_PREFIX)) continue;
    if (name.startsWith('$'))
      throw badRequest(`patch directive ${name} is not supported: send the whole list`);
    if (value === null) delete merged[name];
    else
      merged[name] = mergeValue(
        path === '' ? name : `${path}.${name}`,
        object[name],
        value,
        fields[ORDER_PREFIX + name],
      );
  }
  return merged;
}

function mergeValue(path: string, present: unknown, value: unknown, order: unknown): unknown {
  if (Array.isArray(value)) {
    const key = MERGE_KEYS[path];
    return key === undefined
      ? value
      : mergeList(path, key, Array.isArray(present) ? present : [], value, order);
  }
  if (typeof value !== 'object' || value === null) return value;
  return mergeFields(path, fieldsOf(present), fieldsOf(value));
}

function mergeList(
  path: string,
  key: string,
  present: readonly unknown[],
  patch: readonly unknown[],
  order: unknown,
): readonly unknown[] {
  const items = patch.map((item) => objectOf(`an item of ${path}`, item));
  const replaces = items.some((item) => item[DIRECTIVE] === 'replace');
  const before = replaces ? [] : present.map(fieldsOf);
  const deleted = new Set(items.filter((item) => item[DIRECTIVE] === 'delete').map((item) => item[key]));
  const merged = items
    .filter((item) => item[DIRECTIVE] === undefined || item[DIRECTIVE] === 'merge')
    .map((item) => {
      if (item[key] === undefined)
        throw badRequest(`an item of ${path} has no ${key}, by which it is merged: add it`);
      return mergeFields(path, before.find((old) => old[key] === item[key]) ?? {}, item);
    });
  const untouched = before.filter(
    (old) => !deleted.has(old[key]) && merged.every((item) => item[key] !== old[key]),
  );
  return interleave(inOrder(merged, key, order), untouched, (item) =>
    before.findIndex((old) => old[key] === item[key]),
  );
}

/** The patched items as `$setElementOrder` wants them; those it does not name stay in front. */
function inOrder(items: readonly Fields[], key: string, order: unknown): readonly Fields[] {
  if (!Array.isArray(order)) return items;
  const keys = order.map((item) => fieldsOf(item)[key]);
  return items.toSorted((a, b) => keys.indexOf(a[key]) - keys.indexOf(b[key]));
}

/**
 * Patched items first, unless an untouched one stood in front of a patched one that was there before.
 * Upstream: `mergeSortedSlice`.
 */
function interleave(
  patched: readonly Fields[],
  untouched: readonly Fields[],
  placeBefore: (item: Fields) => number,
): readonly Fields[] {
  const [first, ...others] = untouched;
  const [next, ...later] = patched;
  if (first === undefined) return patched;
  if (next === undefined) return untouched;
  const place = placeBefore(next);
  return place >= 0 && placeBefore(first) < place
    ? [first, ...interleave(patched, others, placeBefore)]
    : [next, ...interleave(later, untouched, placeBefore)];
}

function objectOf(what: string, value: unknown): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return fieldsOf(value);
  throw badRequest(`${what} must be a JSON object`);
}

function refuseUnknownDirective(directive: unknown): void {
  if (directive === undefined || directive === 'merge') return;
  throw badRequest(`$patch: ${String(directive)} is not supported: use replace, delete or merge`);
}
