/** The value of secrets in the inputs: no error message may contain it. */
export const SECRET = 'c2VjcmV0LW9mLXRoZS1maXhlZC1zYW1wbGU';

/** The maximum length of an error message, for any input. */
const MAX_CHARACTERS = 1_500;

/** Parts of messages that are not meant for users. The exception is for YAML, which can have a key named NaN. */
export const INTERNALS =
  /Cannot (?:read|set|convert|destructure|mix)|is not (?:a function|iterable|defined|a constructor|extensible)|\[object |undefined|(?<!no setting )\bNaN\b|Maximum call stack|Invalid (?:array|string) length|circular|Unexpected (?:token|end|non-whitespace)|in JSON at|\.ts:\d/;

/** Control characters except tabs, and unpaired surrogates. */
const UNPRINTABLE = /(?!\t)[\p{Cc}\u2028\u2029]|\p{Cs}/u;

type Kind = new (...args: never[]) => Error;

/** An input was neither accepted nor rejected properly. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/**
 * Checks that an error is a proper rejection: an error of one of these kinds, with one sentence on one line. The sentence has a
 * bounded length, no secrets and no internals. Throws `Broken` for any other.
 */
export function refusal(error: unknown, kinds: readonly Kind[]): 'refused' {
  if (!(error instanceof Error && kinds.some((kind) => error instanceof kind))) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Broken(`is refused by no error of ours: ${text.slice(0, 2_000)}`);
  }
  sentence(error.message);
  return 'refused';
}

/** Checks that a text is such a sentence. Throws `Broken` otherwise. */
export function sentence(text: string): void {
  const fault = faultOf(text);
  if (fault !== undefined) throw new Broken(`a refusal ${fault}: ${text.slice(0, 2_000)}`);
}

function faultOf(text: string): string | undefined {
  if (text.trim() === '') return 'says nothing';
  if (text.length > MAX_CHARACTERS) return `has ${text.length} characters`;
  if (UNPRINTABLE.test(text))
    return `holds what cannot be printed on a line (${JSON.stringify(UNPRINTABLE.exec(text)?.[0])})`;
  if (text.includes(SECRET)) return 'tells a secret';
  const internal = INTERNALS.exec(text)?.[0];
  return internal === undefined ? undefined : `says ${JSON.stringify(internal)}`;
}

/** Throws `Broken` unless the condition holds. */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Broken(what);
}
