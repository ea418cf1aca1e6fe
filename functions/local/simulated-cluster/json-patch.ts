import { apply, JSONPatchError, type JSONValue, type OpObject } from 'json-p3';
import * as z from 'zod';
import { parseJson, stringifyJson } from './objects/json.ts';
import { StatusError, schemaFault } from './objects/status.ts';

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
