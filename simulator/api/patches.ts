import type { IncomingMessage } from 'node:http';
import { apply, JSONPatchError, type JSONValue, type OpObject } from 'json-p3';
import * as z from 'zod';
import { fieldsOf, parseJson, stringifyJson } from '../objects/json.ts';
import { badRequest, StatusError, schemaFault } from '../objects/status.ts';
import { mediaType } from './media-type.ts';
import { strategicMergePatch } from './strategic-merge-patch.ts';

/** Returns the object after the PATCH. Throws 400 for a request without a patch. */
export function patched(request: IncomingMessage, object: unknown, patch: unknown): unknown {
  const apply = PATCHES[mediaType(request)];
  if (apply === undefined || patch === undefined) throw badRequest('the request has no patch: send one');
  return apply(object, patch);
}

/** The kinds of patch, by the media type of the request's body. They never change the object itself. */
export const PATCHES: Readonly<Record<string, (object: unknown, patch: unknown) => unknown>> = {
  'application/strategic-merge-patch+json': strategicMergePatch,
  'application/merge-patch+json': mergePatch,
  'application/json-patch+json': jsonPatch,
};

/** Returns a value after a JSON merge patch (RFC 7386): null removes a field, objects are merged, everything else is replaced. */
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
 * Returns the object after a JSON patch (RFC 6902), which applies completely or not at all. Throws 422 if the patch is malformed,
 * names a missing place, or contains a test that fails.
 */
export function jsonPatch(object: unknown, patch: unknown): unknown {
  const parsed = operations.safeParse(patch);
  if (!parsed.success) throw refused(schemaFault(parsed.error));
  return parsed.data.reduce((document, step, index) => after(document, step as OpObject, index), object);
}

/**
 * Applies each step to its own copy, because the library changes a document in place and shares copied values between both
 * places.
 */
function after(document: unknown, step: OpObject, index: number): unknown {
  const own = parseJson(stringifyJson(document as object)) as JSONValue;
  try {
    return apply([step], own);
  } catch (error) {
    if (!(error instanceof JSONPatchError)) throw error;
    // The library appends the step's index to its message, which is always 0 for a single step.
    const why = error.message.replace(/ \(\w+:0\)$/, '');
    throw refused(`operation ${index}, ${step.op} of ${step.path}: ${why}`);
  }
}

const refused = (why: string) => new StatusError(422, 'Invalid', `the JSON patch does not apply: ${why}`);
