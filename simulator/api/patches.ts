import type { IncomingMessage } from 'node:http';
import { apply, JSONPatchError, type JSONValue, type OpObject } from 'json-p3';
import * as z from 'zod';
import { fieldsOf, parseJson, stringifyJson } from '../objects/json.ts';
import { badRequest, StatusError, schemaFault } from '../objects/status.ts';
import { mediaType } from './media-type.ts';
import { strategicMergePatch } from './strategic-merge-patch.ts';

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
