/**
 * The rule of NoExecute taints, written a second time from Kubernetes' documentation in its plainest form. It uses
 * nothing of `shared/taints` and `shared/eviction`, because it serves to check them.
 */

/** A taint as the API server shows it. Absent is the same as empty. */
export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

/** A toleration as the API server shows it. Absent is the same as empty. */
export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly value?: string | undefined;
  readonly effect?: string | undefined;
  readonly tolerationSeconds?: number | bigint | undefined;
}

/**
 * Reports whether a toleration matches a taint, for any duration. `Lt` and `Gt` compare integers of 64 bits, or
 * nothing.
 */
export function matches(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  const own = taint.value ?? '';
  switch (operator) {
    case '':
    case 'Equal':
      return own === value;
    case 'Exists':
      return true;
    case 'Lt':
      return isInteger(own) && isInteger(value) && BigInt(own) < BigInt(value);
    case 'Gt':
      return isInteger(own) && isInteger(value) && BigInt(own) > BigInt(value);
    default:
      return false;
  }
}

/**
 * Returns the seconds for which a pod tolerates a taint: those of the first matching toleration, regardless of later
 * ones. `Infinity`: indefinitely, or the taint evicts no pods.
 */
export function secondsBorne(tolerations: readonly Toleration[], taint: Taint): number {
  if (taint.effect !== 'NoExecute') return Infinity;
  const first = tolerations.find((each) => matches(each, taint));
  if (!first) return 0;
  return first.tolerationSeconds === undefined ? Infinity : Math.max(0, Number(first.tolerationSeconds));
}

/**
 * Returns the deadline of a pod: the end of the shortest time for which it tolerates one of the taints. That time
 * begins when both the taint and the pod are there. In the unit of `since`, which is milliseconds; `Infinity`: never.
 */
export function dueAt(
  pod: { readonly since: number; readonly tolerations: readonly Toleration[] },
  taints: readonly (Taint & { readonly since: number })[],
): number {
  const ends = taints.map(
    (taint) => Math.max(taint.since, pod.since) + 1000 * secondsBorne(pod.tolerations, taint),
  );
  return Math.min(Infinity, ...ends);
}

/**
 * Reports whether a text is a decimal integer in usual notation: no sign except a minus, no leading zeros, and 64 bits.
 */
const isInteger = (text: string): boolean =>
  /^(0|-?[1-9][0-9]*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
