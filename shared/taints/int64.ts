export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

/** `0`, or a decimal without leading zeros and plus sign; 19 digits hold every int64. */
const CANONICAL = /^(?:0|-?[1-9][0-9]{0,18})$/;

/**
 * Canonical decimal only (not `007`, `+5`, `-0`, `1.5`, `1e3`, ` 5`), otherwise `undefined`. Upstream:
 * `content.IsDecimalInteger`, then `strconv.ParseInt`.
 */
export function parseInt64(text: string): bigint | undefined {
  if (!CANONICAL.test(text)) return undefined;
  const number = BigInt(text);
  return number >= INT64_MIN && number <= INT64_MAX ? number : undefined;
}
