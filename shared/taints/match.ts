import { parseInt64 } from './int64.ts';
import type { MatchOptions, Taint, Toleration } from './taint.ts';

/**
 * Regardless of `tolerationSeconds`. Never fails: one that the API server would reject matches by the same rules (`{}`:
 * every taint without a value). Upstream: `Toleration.ToleratesTaint`.
 */
export function tolerates(taint: Taint, toleration: Toleration, options: MatchOptions): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  const taintValue = taint.value ?? '';
  const tolerationValue = toleration.value ?? '';
  switch (toleration.operator ?? '') {
    case '':
    case 'Equal':
      return taintValue === tolerationValue;
    case 'Exists':
      return true;
    case 'Lt':
      return options.comparisonOperators && isLess(taintValue, tolerationValue);
    case 'Gt':
      return options.comparisonOperators && isLess(tolerationValue, taintValue);
    default:
      return false;
  }
}

/** Returns the first toleration of a list that tolerates a taint: the only one that counts for it. */
export function firstMatch(
  tolerations: readonly Toleration[],
  taint: Taint,
  options: MatchOptions,
): Toleration | undefined {
  return tolerations.find((toleration) => tolerates(taint, toleration, options));
}

/** Compares the integers in two texts. A text that is no int64 is neither less nor greater than any other. */
function isLess(a: string, b: string): boolean {
  const left = parseInt64(a);
  const right = parseInt64(b);
  return left !== undefined && right !== undefined && left < right;
}
