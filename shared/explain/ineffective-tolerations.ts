import { deadline } from '#shared/taints/deadline.ts';
import { INT64_MAX, INT64_MIN, parseInt64 } from '#shared/taints/int64.ts';
import { tolerates } from '#shared/taints/match.ts';
import { DOWN_KEYS, type Taint, type Toleration } from '#shared/taints/taint.ts';
import { UPSTREAM_DEFAULT_TOLERATION_SECONDS, withDefaultTolerations } from '#shared/taints/tolerations.ts';
import { durationText } from '#shared/time/duration.ts';

/** What to do about each kind of toleration whose effect differs from its appearance, as a sentence. */
const REMEDIATIONS = {
  shadowed: 'Put the more specific toleration first, or remove the ineffective one.',
  replaced: 'Remove it: the DaemonSet controller gives its pods a toleration without tolerationSeconds.',
  'zero-seconds':
    'Remove the toleration, so that the pod is scheduled elsewhere, or increase tolerationSeconds.',
  'replacement-loops':
    'Add a NoSchedule taint with a key that the pod does not tolerate. Or tolerate the taint indefinitely, or not at all.',
} as const;

/** A toleration whose effect differs from its appearance. */
export interface IneffectiveToleration {
  readonly rule: keyof typeof REMEDIATIONS;
  readonly message: string;
  readonly remediation: string;
  /** Index of the toleration in its list, from 0. */
  readonly toleration: number;
}

/** A server that disables `Lt` and `Gt` rejects tolerations with them. */
const MATCHING = { comparisonOperators: true };

/** The ineffective tolerations of the pods of a controller of this kind, in order. They must be valid. */
export function ineffectiveTolerations(
  kind: string,
  tolerations: readonly Toleration[],
): readonly IneffectiveToleration[] {
  const found = tolerations.flatMap(
    (toleration, index) =>
      replacedBy(kind, index, toleration) ??
      shadowOf(index, toleration, tolerations) ??
      limitOf(index, toleration, tolerations, kind) ??
      [],
  );
  return [...found, ...defaultLoops(kind, tolerations)].sort((a, b) => a.toleration - b.toleration);
}

/** Upstream: `AddOrUpdateDaemonPodTolerations`. */
function replacedBy(
  kind: string,
  index: number,
  { key = '', operator, effect, tolerationSeconds }: Toleration,
): IneffectiveToleration | undefined {
  const isReplaced =
    kind === 'DaemonSet' && DOWN_KEYS.includes(key) && operator === 'Exists' && effect === 'NoExecute';
  if (!isReplaced || tolerationSeconds === undefined) return undefined;
  return finding('replaced', index, `tolerationSeconds of ${key} has no effect in a DaemonSet.`);
}

/** Only the eviction uses the first match; schedulers check whether any toleration matches. */
function shadowOf(
  index: number,
  toleration: Toleration,
  tolerations: readonly Toleration[],
): IneffectiveToleration | undefined {
  if (!matchesExecuting(toleration)) return undefined;
  const samples = samplesOf(toleration);
  const at = tolerations
    .slice(0, index)
    .findIndex((other) => samples.every((taint) => tolerates(taint, other, MATCHING)));
  const first = tolerations[at];
  if (!first || secondsOf(first, samples) === secondsOf(toleration, samples)) return undefined;
  return finding(
    'shadowed',
    index,
    `${textOf(index, toleration)} has no effect: ${textOf(at, first)} comes first and matches everything that it matches.`,
  );
}

function limitOf(
  index: number,
  toleration: Toleration,
  tolerations: readonly Toleration[],
  kind: string,
): IneffectiveToleration | undefined {
  const decides = (taint: Taint) =>
    tolerations.findIndex((each) => tolerates(taint, each, MATCHING)) === index;
  const sample = samplesOf(toleration).find(decides);
  if (!sample || !matchesExecuting(toleration)) return undefined;
  const seconds = secondsOf(toleration, [sample]);
  if (seconds === undefined) return undefined;
  if (seconds === 0n) {
    const what = `${textOf(index, toleration)} lasts 0s: the scheduler may place the pod on such a node, where it is evicted immediately.`;
    return finding('zero-seconds', index, what);
  }
  if (DOWN_KEYS.includes(sample.key) && !staysSchedulable(sample.key, kind, tolerations)) return undefined;
  const lasts = secondsText(seconds);
  const what = `${textOf(index, toleration)} lasts ${lasts}, but the scheduler ignores the duration: the replacement may be scheduled to the same node, and is evicted again after ${lasts}.`;
  return finding('replacement-loops', index, what);
}

/** Returns the same finding about the tolerations that a pod gets by default. */
function defaultLoops(kind: string, tolerations: readonly Toleration[]): readonly IneffectiveToleration[] {
  const defaults = withDefaultTolerations(tolerations).slice(tolerations.length);
  const keys = defaults.map(({ key = '' }) => key).filter((key) => staysSchedulable(key, kind, tolerations));
  const [key] = keys;
  if (key === undefined) return [];
  const what = `${keys.map((each) => `${each}:NoSchedule`).join(' and ')} ${keys.length > 1 ? 'are' : 'is'} tolerated, but NoExecute only for the default ${secondsText(UPSTREAM_DEFAULT_TOLERATION_SECONDS.notReady)}: the replacement may be scheduled to the same node, and is evicted again.`;
  const at = tolerations.findIndex((each) => tolerates({ key, effect: 'NoSchedule' }, each, MATCHING));
  return [finding('replacement-loops', at, what)];
}

/** The node controller also adds a NoSchedule taint with the key, which pods of DaemonSets tolerate indefinitely. */
const staysSchedulable = (key: string, kind: string, tolerations: readonly Toleration[]): boolean =>
  kind !== 'DaemonSet' &&
  tolerations.some((each) => tolerates({ key, effect: 'NoSchedule' }, each, MATCHING));

const matchesExecuting = ({ effect = '' }: Toleration): boolean => effect === '' || effect === 'NoExecute';

/** A key and a value that no taint has. */
const ANY = ' ';

/** Samples: a toleration that tolerates all of them tolerates everything that the given one does. */
function samplesOf({ key, operator = '', value = '' }: Toleration): readonly Taint[] {
  const taint = (sample: string): Taint => ({ key: key || ANY, value: sample, effect: 'NoExecute' });
  const bound = parseInt64(value) ?? 0n;
  switch (operator) {
    case 'Exists':
      return [taint(ANY)];
    case 'Lt':
      return [taint(String(bound - 1n)), taint(String(INT64_MIN))];
    case 'Gt':
      return [taint(String(bound + 1n)), taint(String(INT64_MAX))];
    default:
      return [taint(value)];
  }
}

function secondsOf(toleration: Toleration, [sample]: readonly Taint[]): bigint | undefined {
  if (!sample) return undefined;
  return deadline([toleration], [{ ...sample, since: 0 }], 0, MATCHING)?.because[0]?.seconds;
}

const secondsText = (seconds: bigint): string => durationText(Number(seconds) * 1000);

function textOf(index: number, { key, operator, value = '', effect, tolerationSeconds }: Toleration): string {
  const compared = { Exists: '', Lt: `<${value}`, Gt: `>${value}` }[operator ?? ''] ?? `=${value}`;
  const forSeconds = tolerationSeconds === undefined ? '' : ` for ${secondsText(tolerationSeconds)}`;
  return `tolerations[${index}] (${key || 'every key'}${compared}${effect ? `:${effect}` : ''}${forSeconds})`;
}

const finding = (
  rule: IneffectiveToleration['rule'],
  toleration: number,
  message: string,
): IneffectiveToleration => ({ rule, message, remediation: REMEDIATIONS[rule], toleration });
