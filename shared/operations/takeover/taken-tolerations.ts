import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { tolerates } from '#shared/taints/match.ts';
import { ownSeconds } from '#shared/taints/takeover-note.ts';
import type { PodTakeover } from './at-pods.ts';

/** A toleration in a pod's JSON. */
export type TolerationJson = Readonly<Record<string, unknown>>;

/** Wanted tolerations and note of a pod. Empty note: none. */
export interface PodState {
  readonly tolerations: readonly TolerationJson[];
  readonly note: string;
}

/** Seconds beyond which a toleration counts as indefinite: they are too long to matter. */
const MAX_LENGTH = 2n ** 31n - 1n;

/**
 * Returns the pod as the takeover's policy would have changed it at its creation. `undefined`: no change.
 * Used for pods that existed before the takeover. The rules are the same as in `at-pods.ts`.
 */
export function takenOver(pod: PodState, { keys, fallbackSeconds }: PodTakeover): PodState | undefined {
  const tolerations = [...pod.tolerations];
  const added: TolerationJson[] = [];
  const entries: string[] = [];
  for (const key of keys) {
    const at = decidingAt(pod.tolerations, key);
    const decides = pod.tolerations[at];
    const seconds = secondsOf(decides);
    if (seconds === undefined) continue;
    const own = ownSeconds(pod.note, key, seconds);
    if (own !== undefined) {
      entries.push(`${key}=${own}+${seconds - own}`);
      continue;
    }
    entries.push(`${key}=${seconds}+${fallbackSeconds}`);
    const tolerationSeconds = Number(seconds) + fallbackSeconds;
    if (decides && textOf(decides['key']) === key) tolerations[at] = { ...decides, tolerationSeconds };
    else added.unshift({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds });
  }
  const note = entries.join(',');
  if (note === '' || note === pod.note) return undefined;
  return { tolerations: [...added, ...tolerations], note };
}

/**
 * Returns the pod as before its takeover, as far as possible. An added toleration stays, because tolerations
 * cannot be removed, but with the pod's own seconds.
 */
export function restored(pod: PodState): PodState {
  const tolerations = pod.tolerations.map((toleration) => {
    const seconds = secondsOf(toleration);
    const own = seconds === undefined ? undefined : ownSeconds(pod.note, textOf(toleration['key']), seconds);
    return own === undefined ? toleration : { ...toleration, tolerationSeconds: Number(own) };
  });
  return { tolerations, note: '' };
}

/**
 * Returns the same tolerations, without time limits where the seconds change. A built-in controller that
 * waits for the pod then discards its timer, and starts again with the next change. It doesn't move a running
 * timer.
 */
export function timeless(before: PodState, after: PodState): readonly TolerationJson[] {
  const added = after.tolerations.length - before.tolerations.length;
  return after.tolerations.map((toleration, index) => {
    const was = before.tolerations[index - added];
    if (was && was['tolerationSeconds'] === toleration['tolerationSeconds']) return toleration;
    const { tolerationSeconds: _, ...rest } = toleration;
    return rest;
  });
}

/**
 * Returns the index of the toleration that decides for the node controller's taint with this key. -1: none
 * matches.
 */
function decidingAt(tolerations: readonly TolerationJson[], key: string): number {
  return tolerations.findIndex((json) => {
    const { key: of, operator, value, effect } = fieldsOf(json);
    const toleration = {
      key: textOf(of),
      operator: textOf(operator),
      value: textOf(value),
      effect: textOf(effect),
    };
    return tolerates({ key, effect: 'NoExecute' }, toleration, { comparisonOperators: false });
  });
}

/**
 * Returns the seconds that the built-in controller would wait. 0 without a toleration. `undefined`:
 * indefinitely.
 */
function secondsOf(toleration: TolerationJson | undefined): bigint | undefined {
  if (!toleration) return 0n;
  const { tolerationSeconds } = toleration;
  if (typeof tolerationSeconds !== 'bigint' && !Number.isSafeInteger(tolerationSeconds)) return undefined;
  const seconds = BigInt(tolerationSeconds as number | bigint);
  if (seconds > MAX_LENGTH) return undefined;
  return seconds > 0n ? seconds : 0n;
}
