/**
 * The rule of NoExecute taints, written down a second time from what Kubernetes says of it, in its plainest form: it knows nothing of
 * `shared/taints` and `shared/eviction`, against which it speaks.
 */

/** As the API server shows it. Absent is as empty. */
export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

/** As the API server shows it. Absent is as empty. */
export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly value?: string | undefined;
  readonly effect?: string | undefined;
  readonly tolerationSeconds?: number | bigint | undefined;
}

/** Whether a toleration speaks of a taint, however long it bears it. `Lt` and `Gt` compare integers of 64 bits, or nothing. */
export function speaksOf(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  const is = taint.value ?? '';
  switch (operator) {
    case '':
    case 'Equal':
      return is === value;
    case 'Exists':
      return true;
    case 'Lt':
      return isInteger(is) && isInteger(value) && BigInt(is) < BigInt(value);
    case 'Gt':
      return isInteger(is) && isInteger(value) && BigInt(is) > BigInt(value);
    default:
      return false;
  }
}

/**
 * For how many seconds a pod bears a taint: by the first of its tolerations that speaks of it, whatever those behind say. `Infinity`: for
 * ever, or the taint evicts nobody.
 */
export function secondsBorne(tolerations: readonly Toleration[], taint: Taint): number {
  if (taint.effect !== 'NoExecute') return Infinity;
  const first = tolerations.find((each) => speaksOf(each, taint));
  if (!first) return 0;
  return first.tolerationSeconds === undefined ? Infinity : Math.max(0, Number(first.tolerationSeconds));
}

/**
 * When a pod has to go: as soon as one of the taints has been there, with the pod, for as long as the pod bears it. In the unit of
 * `since`, which is milliseconds; `Infinity`: never.
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

/** Decimal, as one would write it: no sign but a minus, no zeros in front; and of 64 bits. */
const isInteger = (text: string): boolean =>
  /^(0|-?[1-9][0-9]*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
