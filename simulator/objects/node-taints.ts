import { type Taint, taintText } from '#shared/taints/taint.ts';
import { TaintArgumentError, taintParts } from '#shared/taints/taint-argument.ts';

/** A taint to remove: the one of a key and effect, or all taints of a key. */
export interface TaintRemoval {
  readonly key: string;
  readonly effect?: string;
}

/**
 * Reads `key-`, `key:Effect-` or `key=value:Effect-` (the value is ignored), as `kubectl taint` does. The `-` is
 * optional if the context makes clear that a taint is to be removed. Throws `TaintArgumentError`.
 */
export function parseTaintRemoval(text: string): TaintRemoval {
  const { key, effect } = taintParts(text.replace(/-$/, ''), 'maintenance:NoExecute- or maintenance-');
  return effect === undefined ? { key } : { key, effect };
}

/** Returns the taints with one added; it replaces a taint of its key and effect in place. */
export function addTaint(taints: readonly Taint[], taint: Taint): readonly Taint[] {
  const index = taints.findIndex((old) => old.key === taint.key && old.effect === taint.effect);
  return index < 0 ? [...taints, taint] : taints.with(index, taint);
}

/** Returns the remaining taints after a removal. Throws `TaintArgumentError` if there is none to remove. */
export function removeTaint(taints: readonly Taint[], { key, effect }: TaintRemoval): readonly Taint[] {
  const kept = taints.filter(
    (taint) => taint.key !== key || (effect !== undefined && taint.effect !== effect),
  );
  if (kept.length < taints.length) return kept;
  const has = taints.length === 0 ? 'no taint' : taints.map(taintText).join(', ');
  throw new TaintArgumentError(
    `taint "${effect === undefined ? key : `${key}:${effect}`}" not found: the node has ${has}`,
  );
}
