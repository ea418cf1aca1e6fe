import { fieldsOf } from './objects/json.ts';

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
