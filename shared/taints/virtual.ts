import { tolerates } from './match.ts';
import { evicts, type MatchOptions, type Taint, type Toleration } from './taint.ts';

/**
 * NoExecute taints, and NoSchedule taints of keys that policy reads so, marked `virtual`, in the node's order. Of both
 * with one key, the NoExecute counts, with the earlier time, by which its countdown began; without one if the other has
 * none.
 */
export function evictingTaints<T extends Taint & { readonly timeAdded?: number }>(
  taints: readonly T[],
  treatAsNoExecute: readonly string[],
): readonly T[] {
  const taintOf = (effect: string) =>
    new Map(taints.filter((taint) => taint.effect === effect).map((taint) => [taint.key, taint]));
  const executing = taintOf('NoExecute');
  const twins = taintOf('NoSchedule');
  return taints
    .map((taint) => {
      if (!treatAsNoExecute.includes(taint.key)) return taint;
      if (taint.effect === 'NoSchedule' && !executing.has(taint.key)) return { ...taint, virtual: true };
      const twin = twins.get(taint.key);
      return twin ? addedWith(taint, twin) : taint;
    })
    .filter(evicts);
}

function addedWith<T extends { readonly timeAdded?: number }>(taint: T, twin: T): T {
  const { timeAdded: own, ...rest } = taint;
  const other = twin.timeAdded;
  return (other === undefined ? rest : { ...rest, timeAdded: Math.min(own ?? other, other) }) as T;
}

/** Returns a taint in the form in which it is matched with the tolerations that decide its deadline. */
export const asExecuting = <T extends Taint>(taint: T): T =>
  taint.virtual ? { ...taint, effect: 'NoExecute' } : taint;

/** Reports whether a pod without a deciding toleration stays: it tolerates a virtual taint as NoSchedule. */
export const stays = (taint: Taint, tolerations: readonly Toleration[], options: MatchOptions): boolean =>
  taint.virtual === true && tolerations.some((toleration) => tolerates(taint, toleration, options));
