import { tolerates } from './match.ts';
import { evicts, type MatchOptions, type Taint, type Toleration } from './taint.ts';

/**
 * The taints of a node that evict, in its order: the NoExecute ones, and the NoSchedule ones of the keys that policy
 * reads as NoExecute, marked `virtual`. Where a node has both of one key, the NoExecute one counts alone.
 */
export function evictingTaints<T extends Taint>(
  taints: readonly T[],
  virtualKeys: readonly string[],
): readonly T[] {
  const executing = new Set(taints.filter(({ effect }) => effect === 'NoExecute').map(({ key }) => key));
  const isVirtual = ({ key, effect }: T) =>
    effect === 'NoSchedule' && virtualKeys.includes(key) && !executing.has(key);
  return taints
    .map((taint) => (isVirtual(taint) ? { ...taint, virtual: true as const } : taint))
    .filter(evicts);
}

/** A taint as the tolerations that decide its deadline are matched with it. */
export const asExecuting = <T extends Taint>(taint: T): T =>
  taint.virtual ? { ...taint, effect: 'NoExecute' } : taint;

/** Whether a pod without a toleration that decides stays: it tolerates a virtual taint as the NoSchedule taint it is. */
export const stays = (taint: Taint, tolerations: readonly Toleration[], options: MatchOptions): boolean =>
  taint.virtual === true && tolerations.some((toleration) => tolerates(taint, toleration, options));
