import { tolerates } from './match.ts';
import type { Taint, Toleration } from './taint.ts';

/** How far the search for the tolerations that decide one taint has come. */
const SOUGHT = 0;
/** One was found that matches by comparison: it counts only where the API server knows the operators. */
const COMPARED = 1;
const FOUND = 2;

/**
 * Cuts toleration lists of pods of one node to what decides: for each NoExecute taint the first toleration that
 * matches it, with comparison operators and without, so that whoever matches the cut list finds the same under
 * either option. Each carries its `index` in the whole list; their order stays. A list is walked once at most, and
 * cut once, however many pods share the object.
 */
export function decidingTolerations(
  taints: readonly Taint[],
): (tolerations: readonly Toleration[]) => readonly Toleration[] {
  const evicting = taints.filter(({ effect }) => effect === 'NoExecute');
  const all = [...evicting.keys()];
  const byKey = new Map<string, number[]>();
  for (const [at, { key }] of evicting.entries()) {
    const ofKey = byKey.get(key);
    if (ofKey) ofKey.push(at);
    else byKey.set(key, [at]);
  }
  /** Whether the toleration decides one of the taints; notes which of them need no other. */
  const decides = (toleration: Toleration, progress: Uint8Array): boolean => {
    let deciding = false;
    for (const at of (toleration.key ? byKey.get(toleration.key) : all) ?? []) {
      const taint = evicting[at];
      if (!taint || progress[at] === FOUND) continue;
      if (tolerates(taint, toleration, { comparisonOperators: false })) {
        progress[at] = FOUND;
        deciding = true;
      } else if (progress[at] === SOUGHT && tolerates(taint, toleration, { comparisonOperators: true })) {
        progress[at] = COMPARED;
        deciding = true;
      }
    }
    return deciding;
  };
  const known = new WeakMap<readonly Toleration[], readonly Toleration[]>();
  return (tolerations) => {
    const cutBefore = known.get(tolerations);
    if (cutBefore) return cutBefore;
    const progress = new Uint8Array(evicting.length);
    const cut: Toleration[] = [];
    for (const [index, toleration] of tolerations.entries()) {
      if (decides(toleration, progress)) cut.push({ ...toleration, index });
    }
    known.set(tolerations, cut);
    return cut;
  };
}
