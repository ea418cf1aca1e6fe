import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { tolerates } from '#shared/taints/match.ts';
import { ownSeconds } from '#shared/taints/takeover-note.ts';
import type { PodTakeover } from './at-pods.ts';

/** A toleration as a pod's JSON has it. */
export type TolerationJson = Readonly<Record<string, unknown>>;

/** What a pod is to have: its tolerations, and its note ('': none). */
export interface PodState {
  readonly tolerations: readonly TolerationJson[];
  readonly note: string;
}

/** Beyond, a pod counts as tolerating for ever: it is too long to matter. */
const MAX_LENGTH = 2n ** 31n - 1n;

/**
 * What the policy of a takeover would have made of a pod when it was created; `undefined`: what it is. For pods that were
 * there before. The same rule as in `at-pods.ts`.
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
 * What a pod was before it was taken over, as far as that can be: a toleration that was added stays, for none may be
 * removed, with the seconds that its pod had without it.
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
 * The same tolerations, but those are for ever of which the seconds change: a built-in controller that waits for a pod
 * forgets it then, and begins anew with what comes next. It does not move a timer that runs.
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

/** Where the toleration stands that decides on the node controller's taint of a key; -1: none matches it. */
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

/** What the built-in controller would wait; 0 without a toleration; `undefined`: for ever. */
function secondsOf(toleration: TolerationJson | undefined): bigint | undefined {
  if (!toleration) return 0n;
  const { tolerationSeconds } = toleration;
  if (typeof tolerationSeconds !== 'bigint' && !Number.isSafeInteger(tolerationSeconds)) return undefined;
  const seconds = BigInt(tolerationSeconds as number | bigint);
  if (seconds > MAX_LENGTH) return undefined;
  return seconds > 0n ? seconds : 0n;
}
