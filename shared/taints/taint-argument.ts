import { type Taint, taintText } from './taint.ts';
import { taintProblems } from './validation.ts';

/** A taint to remove: the one of a key and effect, or all taints of a key. */
export interface TaintRemoval {
  readonly key: string;
  readonly effect?: string;
}

/** A taint's text is invalid, or doesn't fit the node's taints; the message states a valid form. */
export class TaintArgumentError extends Error {
  override readonly name = 'TaintArgumentError';
}

const ADDITION_EXAMPLE = 'maintenance=now:NoExecute or maintenance:NoExecute';
const REMOVAL_EXAMPLE = 'maintenance:NoExecute- or maintenance-';

/** Reads `key=value:Effect` or `key:Effect`, as `kubectl taint` does. Throws `TaintArgumentError`. */
export function parseTaint(text: string): Taint {
  if (text.endsWith('-')) {
    throw new TaintArgumentError(`"${text}" removes a taint. To add one, omit the trailing -`);
  }
  const { key, value, effect } = parts(text, ADDITION_EXAMPLE);
  if (effect === undefined) {
    throw new TaintArgumentError(`"${text}" lacks an effect. Specify one, for example ${ADDITION_EXAMPLE}`);
  }
  return valid(text, { key, ...(value === '' ? {} : { value }), effect }, ADDITION_EXAMPLE);
}

/**
 * Reads `key-`, `key:Effect-` or `key=value:Effect-` (the value is ignored), as `kubectl taint` does. The `-` is
 * optional if the context makes clear that a taint is to be removed. Throws `TaintArgumentError`.
 */
export function parseTaintRemoval(text: string): TaintRemoval {
  const { key, value, effect } = parts(text.replace(/-$/, ''), REMOVAL_EXAMPLE);
  // Validate the key and the effect as in a whole taint.
  valid(text, { key, value, effect: effect ?? 'NoExecute' }, REMOVAL_EXAMPLE);
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

function parts(text: string, example: string): { key: string; value: string; effect: string | undefined } {
  // Equivalent mutant (StringLiteral): A text that is split has a first part; the type checker does not know.
  const [keyAndValue = '', effect, ...moreEffects] = text.split(':');
  // Equivalent mutant (StringLiteral): A text that is split has a first part; the type checker does not know.
  const [key = '', value = '', ...moreValues] = keyAndValue.split('=');
  if (
    moreEffects.length > 0 ||
    moreValues.length > 0 ||
    (effect === undefined && keyAndValue.includes('='))
  ) {
    throw new TaintArgumentError(`"${text}" is not a taint. Specify one like ${example}`);
  }
  return { key, value, effect };
}

function valid(text: string, taint: Taint, example: string): Taint {
  const [problem] = taintProblems([taint]);
  if (problem === undefined) return taint;
  const fault = problem.message.replace('taints[0].', '').replace(/\.$/, '');
  throw new TaintArgumentError(`"${text}" is not a taint. Its ${fault}. Specify one like ${example}`);
}
