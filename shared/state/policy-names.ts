import * as z from 'zod';
import { formerly } from '#shared/eviction/settings.ts';

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
  if (schema instanceof z.ZodCodec) return within(schema.def.in as z.core.$ZodType, written);
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodPrefault
  )
    return within(schema.def.innerType, written);
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

const isMapping = (written: unknown): written is Readonly<Record<string, unknown>> =>
  typeof written === 'object' && written !== null && !Array.isArray(written);
