/** The annotation of a pod whose tolerations a takeover has lengthened: `<key>=<own>+<fallback>,…`, both in seconds. */
export const TAKEOVER_ANNOTATION = 'taintward.dev/takeover';

/** A note is as long as a few taint keys; more than that nobody of us wrote. */
const MAX_NOTE = 1_000;
const ENTRY = /^([A-Za-z0-9._/-]+)=([0-9]{1,10})\+([1-9][0-9]{0,9})$/;

/**
 * What a pod asks for itself in a toleration of `key` that now has `seconds`; `undefined`: its note does not speak of
 * that. An entry counts only where own and fallback are together what the toleration says, so whoever forges one can
 * only shorten the pod's own stay, and what somebody has set since counts as it stands.
 */
export function ownSeconds(note: string, key: string, seconds: bigint): bigint | undefined {
  if (note.length >= MAX_NOTE) return undefined;
  for (const entry of note.split(',')) {
    // Equivalent mutants (StringLiteral × 2, ArrayDeclaration): An entry that matches has all three, and of
    // one that does not the key is `undefined`, which is no taint's.
    const [, of, own = '', fallback = ''] = ENTRY.exec(entry) ?? [];
    if (of === key && BigInt(own) + BigInt(fallback) === seconds) return BigInt(own);
  }
  return undefined;
}
