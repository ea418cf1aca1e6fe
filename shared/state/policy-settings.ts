import * as z from 'zod';
import { whenApplied } from '#shared/eviction/settings.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Returns the schema of the written value in a schema that only converts it, or allows for its absence. */
function wrappedIn(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodCodec) return schema.def.in;
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodPrefault;
  return isWrapper ? schema.def.innerType : undefined;
}

/** A reason against applying a policy that is readable. */
export interface PolicyFault {
  /** The path of the setting, from the document's root. */
  readonly path: readonly PropertyKey[];
  /** The end of a sentence that begins with the setting. */
  readonly fault: string;
}

/**
 * Yields the reasons against applying a document that the schema accepts. With `now`, also settings that have expired
 * by then.
 */
export function* policyFaults(
  schema: z.core.$ZodType,
  written: unknown,
  now: EpochMs | undefined,
  path: readonly PropertyKey[] = [],
): Iterable<PolicyFault> {
  if (written === undefined) return;
  const faults = whenApplied.get(schema)?.faults(written as never, now) ?? [];
  yield* faults.map((fault) => ({ path, fault }));
  const within = (inner: z.core.$ZodType, part: unknown, ...at: readonly PropertyKey[]) =>
    policyFaults(inner, part, now, [...path, ...at]);
  const wrapped = wrappedIn(schema);
  if (wrapped) yield* within(wrapped, written);
  if (schema instanceof z.ZodUnion) for (const option of schema.def.options) yield* within(option, written);
  if (schema instanceof z.ZodObject)
    for (const [name, inner] of Object.entries(schema.shape))
      yield* within(inner, (written as Readonly<Record<string, unknown>>)[name], name);
  if (schema instanceof z.ZodArray)
    for (const [index, item] of (written as readonly unknown[]).entries())
      yield* within(schema.def.element, item, index);
  if (schema instanceof z.ZodRecord)
    for (const [key, value] of Object.entries(written as object)) {
      yield* within(schema.def.keyType, key, key);
      yield* within(schema.def.valueType, value, key);
    }
}
