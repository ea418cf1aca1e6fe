declare global {
  interface JSON {
    /** ECMAScript "JSON.parse source text access": in Node since 22, not yet in TypeScript's library. */
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
    rawJSON(text: string): unknown;
  }
}

/** An integer of 16 digits or more (2^53 has 16) at the place of a JSON value. In a string, other text may look like one. */
const LONG_INTEGER = /(?:^|[:,[\s])-?[0-9]{16,}(?:[,\]}\s]|$)/;
const INTEGER = /^-?[0-9]+$/;

/**
 * Longer texts are parsed without a reviver, which takes three times the heap: long integers become doubles. These are
 * tolerations' seconds: the taint is then tolerated indefinitely.
 */
export const REVIVED_CHARACTERS = 1024 * 1024;

/** Like `JSON.parse`, but integers beyond doubles become bigints, in texts of up to 1 MiB. Throws `SyntaxError`. */
export function parseInt64Json(text: string): unknown {
  // The reviver takes ten times as long as the rest.
  const isRevived = text.length <= REVIVED_CHARACTERS && LONG_INTEGER.test(text) && hasLongInteger(text);
  if (!isRevived) return JSON.parse(text);
  try {
    return JSON.parse(text, exactInteger);
  } catch (error) {
    // The reviver recurses as deep as the text.
    throw error instanceof RangeError ? new SyntaxError('nested too deeply', { cause: error }) : error;
  }
}

function hasLongInteger(text: string): boolean {
  let from = 0;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (LONG_INTEGER.test(text.slice(from, quote < 0 ? undefined : quote))) return true;
    if (quote < 0) return false;
    from = endOfString(text, quote) + 1;
  }
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === '\\') escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/** Serializes like `JSON.stringify`, but writes a bigint as a bare integer. */
export function stringifyInt64Json(value: NonNullable<unknown> | null): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'bigint' ? JSON.rawJSON(String(part)) : part,
  );
}

function exactInteger(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  return context.source !== undefined && INTEGER.test(context.source) ? BigInt(context.source) : value;
}

// Readers of parsed JSON of unchecked shape: missing values, and values of another type, read as empty.

export type Fields = Readonly<Record<string, unknown>>;

const NONE: Fields = {};

/** Returns `value` if it is an object (an array has no named fields), or else an object without fields. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : NONE;

export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
