import * as z from 'zod';
import { formerly, whenApplied } from '#shared/eviction/settings.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A former name in a document, and the present name. */
export interface FormerName {
  /** The former name is that of a setting, or of a setting's value. */
  readonly of: 'setting' | 'value';
  /** The path of the mapping or setting with the name, from the document's root. */
  readonly path: readonly string[];
  readonly before: string;
  readonly now: string;
  /** True: the document has the present name, too. */
  readonly isSaidTwice: boolean;
}

/**
 * Returns a document, by its schema, with present names in place of former ones. Calls `found` for each former name.
 */
export function withPresentNames(
  schema: z.core.$ZodType,
  written: unknown,
  found: (former: FormerName) => void,
  path: readonly string[] = [],
): unknown {
  const within = (inner: z.core.$ZodType, part: unknown, ...at: readonly string[]) =>
    withPresentNames(inner, part, found, [...path, ...at]);
  const wrapped = wrappedIn(schema);
  if (wrapped) return within(wrapped, written);
  if (schema instanceof z.ZodUnion)
    return schema.def.options.reduce<unknown>((said, option) => within(option, said), written);
  const names = formerly.get(schema)?.names;
  if (schema instanceof z.ZodEnum) {
    const now = typeof written === 'string' ? names?.get(written) : undefined;
    if (now === undefined) return written;
    found({ of: 'value', path, before: written as string, now, isSaidTwice: false });
    return now;
  }
  if (!(schema instanceof z.ZodObject) || !isMapping(written)) return written;
  return Object.fromEntries(
    Object.entries(written).map(([name, value]) => {
      const now = names?.get(name) ?? name;
      if (now !== name)
        found({ of: 'setting', path, before: name, now, isSaidTwice: Object.hasOwn(written, now) });
      const inner = Object.hasOwn(schema.shape, now) ? schema.shape[now] : undefined;
      return [now, inner ? within(inner as z.core.$ZodType, value, now) : value];
    }),
  );
}

/** Returns the schema of the written value in a schema that only converts it, or allows for its absence. */
function wrappedIn(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodCodec) return schema.def.in;
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodPrefault;
  return isWrapper ? schema.def.innerType : undefined;
}

const isMapping = (written: unknown): written is Readonly<Record<string, unknown>> =>
  typeof written === 'object' && written !== null && !Array.isArray(written);

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
