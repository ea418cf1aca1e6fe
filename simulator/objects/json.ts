/** JSON as an API server reads and writes it: 64-bit integers are exact, and null means absent. */

declare global {
  interface JSON {
    /** ECMAScript "JSON.parse source text access"; in Node since 22, not yet in TypeScript's library. */
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
    rawJSON(text: string): unknown;
  }
}

/**
 * Parses as `JSON.parse`, but an integer outside the range that a double holds exactly becomes a bigint. Throws `SyntaxError` for
 * a text that is not JSON.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    return source !== undefined && /^-?[0-9]+$/.test(source) ? BigInt(source) : value;
  });
}

/** Serializes as `JSON.stringify`, but writes a bigint as a bare integer. */
export function stringifyJson(value: NonNullable<unknown> | null): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'bigint' ? JSON.rawJSON(String(part)) : part,
  );
}

/** Returns a copy without the fields that are null: to Kubernetes, null and absent are the same. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== null && field !== undefined)
      .map(([name, field]) => [name, withoutNulls(field)]),
  );
}

/* Readers of unchecked JSON: a field that is missing or of another type reads as empty. */

export type Fields = Readonly<Record<string, unknown>>;

const NONE: Fields = {};

/** Returns `value` if it is an object (an array reads as one without named fields), or else an object without fields. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : NONE;

export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
