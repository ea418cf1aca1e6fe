/** The annotation of a pod whose tolerations a takeover has lengthened: `<key>=<own>+<fallback>,…`, both in seconds. */
export const TAKEOVER_ANNOTATION = 'taintward.dev/takeover';

/** Maximum length of a note: it is as long as a few taint keys. Taintward doesn't write longer ones. */
const MAX_NOTE = 1_000;
const ENTRY = /^([A-Za-z0-9._/-]+)=([0-9]{1,10})\+([1-9][0-9]{0,9})$/;

/**
 * Returns the pod's own seconds in a toleration of `key` that now has `seconds`; `undefined`: its note has no entry for
 * that. An entry counts only if own and fallback seconds add up to the toleration's. So a forged entry can only shorten
 * the pod's own stay, and a toleration that was changed since counts as it is.
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
