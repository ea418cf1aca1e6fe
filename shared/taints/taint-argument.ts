import type { Taint } from './taint.ts';
import { taintProblems } from './validation.ts';

/** A taint's text is invalid, or doesn't fit the node's taints; the message states a valid form. */
export class TaintArgumentError extends Error {
  override readonly name = 'TaintArgumentError';
}

const EXAMPLE = 'maintenance=now:NoExecute or maintenance:NoExecute';

/** Reads `key=value:Effect` or `key:Effect`, as `kubectl taint` does. Throws `TaintArgumentError`. */
export function parseTaint(text: string): Taint {
  if (text.endsWith('-')) {
    throw new TaintArgumentError(`"${text}" removes a taint. To add one, omit the trailing -`);
  }
  const { key, value, effect } = taintParts(text, EXAMPLE);
  if (effect === undefined) {
    throw new TaintArgumentError(`"${text}" lacks an effect. Specify one, for example ${EXAMPLE}`);
  }
  return { key, ...(value === '' ? {} : { value }), effect };
}

/** Reads `key`, `key=value:Effect` or `key:Effect`. `example`: a valid form for the `TaintArgumentError` that it throws. */
export function taintParts(
  text: string,
  example: string,
): { key: string; value: string; effect: string | undefined } {
  const [keyAndValue = '', effect, ...moreEffects] = text.split(':');
  const [key = '', value = '', ...moreValues] = keyAndValue.split('=');
  const isMore = moreEffects.length + moreValues.length > 0;
  if (isMore || (effect === undefined && keyAndValue.includes('=')))
    throw new TaintArgumentError(`"${text}" is not a taint. Specify one like ${example}`);
  // Without an effect, the key is validated as in a whole taint.
  const [problem] = taintProblems([{ key, value, effect: effect ?? 'NoExecute' }]);
  if (problem === undefined) return { key, value, effect };
  const fault = problem.message.replace('taints[0].', '').replace(/\.$/, '');
  throw new TaintArgumentError(`"${text}" is not a taint. Its ${fault}. Specify one like ${example}`);
}
