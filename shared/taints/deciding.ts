import { tolerates } from './match.ts';
import { evicts, type Taint, type Toleration } from './taint.ts';
import { asExecuting } from './virtual.ts';

/** Progress of the search for the tolerations that decide one taint: none was found yet. */
const SOUGHT = 0;
/** A toleration was found that matches by comparison: it counts only if the API server supports these operators. */
const COMPARED = 1;
const FOUND = 2;

/**
 * Cuts a node's toleration lists to those that decide: for each evicting taint the first match, both with comparison
 * operators and without, so that either option gives the same result; for a virtual taint without one, also those for
 * NoSchedule. Keeps their order, with the `index` in the whole list. A shared list is cut once.
 */
export function decidingTolerations(
  taints: readonly Taint[],
): (tolerations: readonly Toleration[]) => readonly Toleration[] {
  const evicting = taints.filter(evicts);
  const seekDeciding = seeker(evicting.map(asExecuting));
  const seekStaying = seeker(evicting);
  const known = new WeakMap<readonly Toleration[], readonly Toleration[]>();
  return (tolerations) => {
    const cutBefore = known.get(tolerations);
    if (cutBefore) return cutBefore;
    const progress = new Uint8Array(evicting.length);
    const deciding = seekDeciding(tolerations, progress);
    const open = evicting.map(({ virtual }, at) => virtual === true && progress[at] !== FOUND);
    if (open.includes(true)) {
      const staying = new Uint8Array(open.map((isOpen) => (isOpen ? SOUGHT : FOUND)));
      for (const index of seekStaying(tolerations, staying)) deciding.add(index);
    }
    const cut = tolerations.flatMap((toleration, index) =>
      deciding.has(index) ? [{ ...toleration, index }] : [],
    );
    known.set(tolerations, cut);
    return cut;
  };
}

/** Walks a list once, returns the indexes of deciding tolerations, and notes the progress for each taint. */
function seeker(
  taints: readonly Taint[],
): (tolerations: readonly Toleration[], progress: Uint8Array) => Set<number> {
  const all = [...taints.keys()];
  const byKey = new Map<string, number[]>();
  for (const [at, { key }] of taints.entries()) {
    const ofKey = byKey.get(key);
    if (ofKey) ofKey.push(at);
    else byKey.set(key, [at]);
  }
  /** Reports whether the toleration decides one of the taints; notes the taints that need no other toleration. */
  const decides = (toleration: Toleration, progress: Uint8Array): boolean => {
    let deciding = false;
    for (const at of (toleration.key ? byKey.get(toleration.key) : all) ?? []) {
      const taint = taints[at];
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
  return (tolerations, progress) =>
    new Set(tolerations.keys().filter((index) => decides(tolerations[index] as Toleration, progress)));
}
